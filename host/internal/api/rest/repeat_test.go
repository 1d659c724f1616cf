package rest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	first := h.post(obj{"body": "hello"}, "Idempotency-Key", "k1")
	again := h.post(obj{"message": "hello", "subject": nil, "show_events": false}, "Idempotency-Key", "k1")
	if first.status != http.StatusOK || again.status != http.StatusOK || first.body != again.body {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	if a, b := first.header.Get("X-Mail-Task-Id"), again.header.Get("X-Mail-Task-Id"); a != b {
		t.Errorf("the repeat started task %s beside %s", b, a)
	}
	stream := events(t, h.post(obj{"body": "hello", "stream": true}, "Idempotency-Key", "k1").body)
	if last := stream[len(stream)-1]; len(stream) != 5 || last.get(t, "response") != "boss got [New Message] hello" {
		t.Errorf("the repeat's stream is %v", stream)
	}
	if a := h.post(obj{"body": "other"}, "Idempotency-Key", "k1"); a.status != http.StatusConflict || a.body != detail("the idempotency key was used for another request") {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
	q := postRequest(obj{"body": "hello"}, "Idempotency-Key", "k1")
	q.token = bobToken
	if a := h.do(q); a.status != http.StatusOK || a.header.Get("X-Mail-Task-Id") == first.header.Get("X-Mail-Task-Id") {
		t.Errorf("the same key of another instance: %d %s, task %s", a.status, a.body, a.header.Get("X-Mail-Task-Id"))
	}
	if n := len(keysOf(t, h.do(request{path: "/tasks"}).body)); n != 1 {
		t.Errorf("there are %d tasks", n)
	}
}

// Each member that changes what a post does makes it another request under its key.
func TestIdempotencyKeyCoversThePost(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	if a := h.post(obj{"body": "hello", "task_id": "t"}, "Idempotency-Key", "k"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for member, value := range map[string]any{
		"body": "other", "subject": "s", "msg_type": "broadcast", "entrypoint": "math", "task_id": "u", "resume_from": "user_response",
		"kwargs": obj{"max_steps": 3}, "kwargs ": obj{"timeout": 60},
	} {
		fields := obj{"body": "hello", "task_id": "t"}
		fields[strings.TrimSpace(member)] = value
		if a := h.post(fields, "Idempotency-Key", "k"); a.status != http.StatusConflict || a.body != detail("the idempotency key was used for another request") {
			t.Errorf("%s = %v: %d %s", member, value, a.status, a.body)
		}
	}
}

func TestIdempotencyKeyRefused(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for name, keys := range map[string][]string{
		"empty": {""}, "long": {strings.Repeat("k", 256)}, "not ASCII": {"k\xc3\xa4"}, "two": {"a", "b"},
	} {
		q := postRequest(obj{"body": "b"})
		q.header["Idempotency-Key"] = keys
		if a := h.do(q); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// Of many posts at once under one key, one is the first; all get its answer.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	got := make([]answer, 12)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			got[i] = h.post(obj{"body": calls("sleep", obj{"ms": 50}, "task_complete", obj{"finish_message": "once"}), "stream": i%3 == 2}, "Idempotency-Key", "k")
		})
	}
	wg.Wait()
	for i, a := range got {
		if a.status != http.StatusOK || !strings.Contains(a.body, `"response":"once"`) {
			t.Errorf("post %d: %d %s", i, a.status, a.body)
		}
		if task := a.header.Get("X-Mail-Task-Id"); task != got[0].header.Get("X-Mail-Task-Id") {
			t.Errorf("post %d is of task %s", i, task)
		}
	}
}

// A caller whose host was restarted sends its post again and gets the answer.
func TestIdempotencyKeyAfterRestart(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	fields := obj{"body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "late"})}
	var first answer
	var wg sync.WaitGroup
	wg.Go(func() { first = h.post(fields, "Idempotency-Key", "k") })
	eventually(t, "the task runs", func() bool { return strings.Contains(h.do(request{path: "/status"}).body, `"user_task_running":true`) })
	h.stop()
	wg.Wait()
	h.start()
	h.script.open("g")
	again := h.post(fields, "Idempotency-Key", "k")
	if first.status != http.StatusServiceUnavailable || again.status != http.StatusOK || !strings.Contains(again.body, "late") {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	if a, b := first.header.Get("X-Mail-Task-Id"), again.header.Get("X-Mail-Task-Id"); a != b {
		t.Errorf("the repeat started task %s beside %s", b, a)
	}
}

func TestRespondAsync(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for _, prefer := range []string{"respond-async", "Respond-Async, wait=0", "return=minimal, respond-async", "respond-async; foo=bar", `respond-async; foo="bar"; baz, wait=0, wait=20`} {
		a := h.post(obj{"body": "hello"}, "Prefer", prefer)
		task := a.header.Get("X-Mail-Task-Id")
		if want := `{"task_id":"` + task + `","status":"accepted"}`; a.status != http.StatusAccepted || a.body != want {
			t.Fatalf("%s: %d %s, want 202 %s", prefer, a.status, a.body, want)
		}
		if a.header.Get("Preference-Applied") != "respond-async" || a.header.Get("Location") != "/skep/v1/tasks/"+task+"/events" {
			t.Errorf("%s: headers %v", prefer, a.header)
		}
		all := events(t, h.do(request{path: a.header.Get("Location")}).body)
		if last := all[len(all)-1]; len(all) != 5 || last.get(t, "response") != "boss got [New Message] hello" {
			t.Errorf("%s: the stream is %v", prefer, all)
		}
	}
	task := obj{"body": "again", "task_id": "a/b c%ü"}
	h.postAndWait(task)
	a := h.post(task, "Prefer", "respond-async")
	if want := "/skep/v1/tasks/a%2Fb%20c%25%C3%BC/events?after=5"; a.header.Get("Location") != want {
		t.Errorf("Location = %q, want %q", a.header.Get("Location"), want)
	}
	if want := "a/b%20c%25%C3%BC"; a.header.Get("X-Mail-Task-Id") != want {
		t.Errorf("X-MAIL-Task-Id = %q, want %q", a.header.Get("X-Mail-Task-Id"), want)
	}
	plain := h.post(obj{"body": "b", "task_id": "50%41"}, "Prefer", "respond-async")
	if want := "50%2541"; plain.header.Get("X-Mail-Task-Id") != want {
		t.Errorf("X-MAIL-Task-Id = %q, want %q", plain.header.Get("X-Mail-Task-Id"), want)
	}
	all := events(t, h.do(request{path: a.header.Get("Location")}).body)
	if len(all) != 5 || all[0].id != "6" {
		t.Errorf("the stream begins at %+v and has %d events", all[0], len(all))
	}
}

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	quick := h.post(obj{"body": "hello"}, "Prefer", "respond-async, wait=20")
	if quick.status != http.StatusOK || quick.header.Get("Preference-Applied") != "" {
		t.Errorf("an answer within the wait: %d %s %v", quick.status, quick.body, quick.header)
	}
	if a := h.post(obj{"body": "hello"}, "Prefer", "wait=20, handling=lenient"); a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
		t.Errorf("a wait alone: %d %s %v", a.status, a.body, a.header)
	}
	slow := h.post(obj{"body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "done"})}, "Prefer", "respond-async, wait=1")
	if slow.status != http.StatusAccepted || slow.header.Get("Location") == "" {
		t.Errorf("an answer after the wait: %d %s", slow.status, slow.body)
	}
	h.script.open("g")
}

func TestMaxWait(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.MaxWait = 50e6 })
	a := h.post(obj{"body": calls("gate", obj{"name": "g"}, "task_complete", obj{"finish_message": "done"})})
	if a.status != http.StatusAccepted || a.header.Get("Preference-Applied") != "" || a.header.Get("Location") == "" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	h.script.open("g")
}

// A peer's message that comes again is answered as before; another one under its id
// is a conflict, and a line in the audit log.
func TestPeerRepeats(t *testing.T) {
	t.Parallel()
	ears := &auditRecorder{}
	h := newTestHost(t, func(h *testHost) {
		h.def.Interswarm, h.def.Agents[0].Interswarm, h.opt.Audit, h.forward = true, true, ears, depotForwarder{}
	})
	send := func(body string) answer {
		return h.do(request{method: http.MethodPost, path: "/interswarm/forward", token: agentToken, body: body})
	}
	first := send(wrapper())
	for _, body := range []string{wrapper(), wrapper("auth_token", "t"), wrapper("metadata", obj{"skep_signature": "x"})} {
		if a := send(body); first.status != http.StatusOK || a.status != http.StatusOK || a.body != first.body {
			t.Errorf("%d %s, then %d %s", first.status, first.body, a.status, a.body)
		}
	}
	ears.recorded()
	a := send(strings.Replace(wrapper(), "valve 17", "valve 18", 1))
	if want := "message_id '1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11' was used for another message"; a.status != http.StatusConflict || a.body != detail(want) {
		t.Errorf("another message: %d %s", a.status, a.body)
	}
	if heard := ears.recorded(); len(heard) != 1 || !strings.HasPrefix(heard[0], "refused|request|POST /interswarm/forward|default|agent:depot|message_id '1c9d") {
		t.Errorf("the audit heard %q", heard)
	}
}
