package pages_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// Every example answers as its README says when the program runs it, without a key of
// any provider, and so does the default swarm.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../examples/*/swarm.toml")
	if err != nil || len(files) < 2 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	p := install(t)
	check := func(t *testing.T, file, ask, want string) {
		// With --data a task that waits for a person is an answer, not a failure.
		got := p.run(t, ask, nil, "run", "-c", file, "--data", filepath.Join(t.TempDir(), "data"))
		if got.code != 0 || got.stdout != want+"\n" {
			t.Errorf("%d: answer %q, want %q\n%s", got.code, got.stdout, want, got.stderr)
		}
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			check(t, file, hosttest.ReadText(t, filepath.Join(dir, "ask")), strings.TrimSuffix(hosttest.ReadText(t, filepath.Join(dir, "answer")), "\n"))
		})
	}
	t.Run("default", func(t *testing.T) {
		t.Parallel()
		check(t, "../../../../swarm.toml", `What is 6*7, and how many words are in "a straw hive"?`, `6*7 = 42, and "a straw hive" has 3 words.`)
	})
}

// What reminder remembers is seen by its other tasks, outlives the host, and is
// gone when its timer is cancelled.
func TestReminderRemembers(t *testing.T) {
	t.Parallel()
	file, data := "../../../../examples/reminder/swarm.toml", t.TempDir()
	say := func(r *hosttest.Host, task, body, want string) {
		t.Helper()
		if a, err := r.Client(t).PostMessage(t.Context(), client.Post{Task: task, Body: body}); err != nil || a.Body != want {
			t.Errorf("%s: %q, %v, want %q", body, a.Body, err, want)
		}
	}
	first := hosttest.Start(t, file, data)
	if _, err := first.Client(t).PostAsync(t.Context(), client.Post{Task: "tea", Body: "in 1h drink tea"}); err != nil {
		t.Error(err)
	}
	asked := func() bool {
		h, err := first.Client(t).History(t.Context(), "tea", "reminder", 0, 10)
		return err == nil && len(h.Entries) > 1 // the message, and what its turn called
	}
	for deadline := time.Now().Add(time.Minute); !asked(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the first turn does not end")
		}
	}
	if err := first.Stop(); err != nil {
		t.Error("stop:", err)
	}
	second := hosttest.Start(t, file, data)
	say(second, "other", "list", "Pending: drink tea")
	say(second, "tea", "cancel", "Cancelled.")
	say(second, "other", "list", "Nothing is pending.")
	if err := second.Stop(); err != nil {
		t.Error("stop:", err)
	}
}

// What tally has in its state is what it finds in its history, also where that is
// longer than the tail and has to be read page by page.
func TestTallyReadsItsWholeHistory(t *testing.T) {
	t.Parallel()
	r := hosttest.Start(t, "../../../../examples/tally/swarm.toml", t.TempDir())
	defer func() {
		if err := r.Stop(); err != nil {
			t.Error("stop:", err)
		}
	}()
	c, body := r.Client(t), strings.Repeat("straw ", 7000)
	for n := range 30 {
		if n == 4 {
			body = "one hive"
		}
		ask := fmt.Sprintf(`[["send_request",{"target":"tally","subject":"s","body":%q}],["await_message",{}]]`, body)
		a, err := c.PostMessage(t.Context(), client.Post{Task: "count", Body: ask})
		if err != nil {
			t.Fatal(err)
		}
		before := 7000*min(n, 4) + 2*max(n-4, 0)
		if want := fmt.Sprintf("; the history has words %d, requests %d", before, n); !strings.HasSuffix(a.Body, want) {
			t.Fatalf("answer %d is %q, want …%q", n, a.Body, want)
		}
	}
}

// The kept tally.wasm was built from the sources beside it.
func TestTallyIsOfItsSources(t *testing.T) {
	sum := func(names ...string) string {
		h := sha256.New()
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join("../../../../examples/tally", name))
			if err != nil {
				t.Fatal(err)
			}
			h.Write(text)
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	built, err := os.ReadFile("../../../../examples/tally/BUILT")
	if err != nil {
		t.Fatal(err)
	}
	want := "tally " + sum("tally.wasm") + " " + sum("json.h", "tally.c") + " "
	if !strings.HasPrefix(string(built), want) {
		t.Errorf("tally.wasm or its sources have changed: run sdk/rebuild.sh\n got %swant %s", built, want)
	}
}

// A host that stops tells a waiting caller, and gives the answer after the
// next start to a repeat under the same key.
func TestDrain(t *testing.T) {
	data := t.TempDir()
	post := func(r *hosttest.Host, sleep string) (*http.Response, string) {
		body := `{"task_id":"t","body":"[[\"sleep\",{\"ms\":` + sleep + `}],[\"task_complete\",{\"finish_message\":\"woke\"}]]"}`
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Addr()+"/message", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+r.Key)
		req.Header.Set("Idempotency-Key", "once")
		rsp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		defer rsp.Body.Close()
		raw, _ := io.ReadAll(rsp.Body)
		return rsp, string(raw)
	}
	dir := hosttest.WriteSwarm(t, "[server]\nshutdown_grace = \"100ms\"\n")
	first := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), data)
	told := make(chan *http.Response, 1)
	go func() {
		rsp, _ := post(first, "1500")
		told <- rsp
	}()
	c := first.Client(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if st, err := c.Status(t.Context()); err == nil && st.TaskRunning {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the task does not start: ", st, err)
		}
	}
	if err := first.Stop(); err != nil {
		t.Error("stop:", err)
	}
	if rsp := <-told; rsp.StatusCode != http.StatusServiceUnavailable ||
		rsp.Header.Get("Retry-After") == "" || rsp.Header.Get("X-MAIL-Finish-Subject") != "::shutdown_requested::" {
		t.Errorf("the waiting caller got %s, %v", rsp.Status, rsp.Header)
	}
	second := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), data)
	if rsp, body := post(second, "1500"); rsp.StatusCode != http.StatusOK || !strings.Contains(body, "woke") {
		t.Errorf("the repeat got %s, %s", rsp.Status, body)
	}
	if err := second.Stop(); err != nil {
		t.Error("stop:", err)
	}
}
