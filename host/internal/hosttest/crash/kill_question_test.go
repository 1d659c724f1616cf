package crash_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/peer/webhook"
)

// questionRequest is a request to a webhook.
type questionRequest struct{ id, body string }

// questionReceiver is the webhook of a host. It takes a request once it has given it to the test, and
// the test has said how it is answered; a request whose host is gone is given up.
type questionReceiver struct {
	*httptest.Server
	requests chan questionRequest
	statuses chan int
}

func newQuestionReceiver(t *testing.T, key []byte) questionReceiver {
	r := questionReceiver{requests: make(chan questionRequest), statuses: make(chan int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		id := req.Header.Get("webhook-id")
		if got, want := req.Header.Get("webhook-signature"), webhook.Sign(key, id, req.Header.Get("webhook-timestamp"), body); got != want {
			t.Errorf("a request is signed with %s, want %s", got, want)
		}
		select {
		case r.requests <- questionRequest{id, string(body)}:
		case <-req.Context().Done():
			return
		}
		select {
		case status := <-r.statuses:
			w.WriteHeader(status)
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// next waits for a request.
func (r questionReceiver) next(t *testing.T) (got questionRequest) {
	t.Helper()
	select {
	case got = <-r.requests:
	case <-t.Context().Done():
	}
	return got
}

// askingSwarm is a host that says at a URL that tasks wait for people.
func askingSwarm(url, secret string) string {
	return strings.Replace(hosttest.ScriptSwarm, `entrypoint = "boss"`, "entrypoint = \"boss\"\nbreakpoint_tools = [\"help\"]", 1) +
		"[questions]\nwebhook = \"" + url + "\"\nsecret = \"" + secret + "\"\n"
}

// A host that is killed while its webhook has not answered says again, under the same id, that a task
// waits; a task that has been answered is no longer told. A receiver that is gone for good makes a dead
// letter, with a line in the log and a count, and the task waits on.
func TestKillQuestion(t *testing.T) {
	t.Parallel()
	key := []byte(strings.Repeat("k", 32))
	receiver := newQuestionReceiver(t, key)
	p := hosttest.StartProcess(t, askingSwarm(receiver.URL+"/planted", "whsec_"+base64.StdEncoding.EncodeToString(key)))
	ask := func(task string) {
		t.Helper()
		post := client.Post{Task: task, Subject: "planted", Body: hosttest.Script(hosttest.Step{"help", hosttest.Args{"get_summary": true}})}
		if _, err := p.Client().PostAsync(t.Context(), post); err != nil {
			t.Fatal(err)
		}
	}
	ask("t1")
	first := receiver.next(t)
	if first.id == "" || !strings.Contains(first.body, `"instance":"user:crash","task_id":"t1","agent":"boss","calls":[{"call_id":"t1.c1","action":"help"}]`) ||
		strings.Contains(first.body, "planted") || strings.Contains(first.body, "get_summary") {
		t.Errorf("%+v", first)
	}
	p.Kill()
	p.Start()
	p.Client()
	if again := receiver.next(t); again != first {
		t.Errorf("after the kill %+v, before %+v", again, first)
	}
	receiver.statuses <- http.StatusInternalServerError
	if again := receiver.next(t); again != first {
		t.Errorf("after a failure %+v, before %+v", again, first)
	}
	receiver.statuses <- http.StatusOK

	ask("t2")
	second := receiver.next(t)
	if second.id == first.id || !strings.Contains(second.body, `"task_id":"t2"`) {
		t.Errorf("another task's %+v, the first %+v", second, first)
	}
	receiver.statuses <- http.StatusGone
	metrics := func() string {
		_, text := hosttest.Fetch(t, http.DefaultClient, "http://"+p.Admin()+"/metrics")
		return text
	}
	hosttest.Eventually(t, "the message is given up", func() bool { return strings.Contains(metrics(), `skep_letters_dead_total{peer="::questions"} 1`) })
	if !strings.Contains(metrics(), "skep_tasks_paused 2\n") || !strings.Contains(p.Log(), "message not delivered") || strings.Contains(p.Log(), receiver.URL+"/planted") {
		t.Error("the log and the metrics do not tell of the message that is given up:\n", metrics())
	}

	// What is answered while its message is under way is not sent again.
	ask("t3")
	third := receiver.next(t)
	result := "x"
	if _, err := p.Client().PostAsync(t.Context(), client.Post{Task: "t3", Result: &result}); err != nil {
		t.Error(err)
	}
	receiver.statuses <- http.StatusServiceUnavailable
	ask("t4")
	fourth := receiver.next(t)
	receiver.statuses <- http.StatusOK
	if fourth.id == third.id || !strings.Contains(fourth.body, `"task_id":"t4"`) {
		t.Errorf("after an answer %+v, before %+v", fourth, third)
	}
}
