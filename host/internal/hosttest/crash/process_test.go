package crash_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// processSwarm has a process as an agent and as an action. It takes the address of
// the web.
const processSwarm = `schema = 1
[swarm]
name = "hive"
entrypoint = "ENTRY"
[agents.boss]
source = "exec:fickle"
trusted = true
comm_targets = ["lead"]
enable_entrypoint = true
can_complete_tasks = true
allow = { http = ["URL"], http_private = true }
[agents.lead]
source = "file:script.wasm"
comm_targets = ["boss"]
enable_entrypoint = true
can_complete_tasks = true
actions = ["ask"]
[actions.ask]
source = "exec:fickle"
trusted = true
allow = { http = ["URL"], http_private = true }
[[auth.keys]]
id = "crash"
role = "user"
key = "a-key-for-the-crash-test"
`

// A host that dies while a process waits for the web runs it again: what asks the
// same goes on and is sent under the same key, and what asks for something else ends
// its turn before that is sent. Another task runs beside it.
func TestHostKilledInAProcess(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(guests.Program(t, "testguests/fickle"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ entry, body, want string }{
		"a turn that repeats":      {"boss", "URL/t/0", "re:/t/0"},
		"a turn that differs":      {"boss", "URL/t/PID", "the turn did not repeat itself"},
		"an action that repeats":   {"lead", `[["ask",{"url":"URL/t/0"}],["task_complete",{"finish_message":"{{0}}"}]]`, "re:/t/0"},
		"an action that differs":   {"lead", `[["ask",{"url":"URL/t/PID"}],["task_complete",{"finish_message":"{{0}}"}]]`, "the turn did not repeat itself"},
		"an action that has ended": {"lead", `[["ask",{"url":"URL/first/PID"}],["ask",{"url":"URL/t/0"}],["task_complete",{"finish_message":"{{1}}"}]]`, "re:/t/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newHoldingServer(t)
			v := hosttest.NewProcess(t, "127.0.0.1")
			if err := os.WriteFile(filepath.Join(v.Dir, "fickle"), program, 0o700); err != nil {
				t.Fatal(err)
			}
			v.Launch(strings.NewReplacer("ENTRY", c.entry, "URL", web.url).Replace(processSwarm))
			cl := v.Client()
			if _, err := cl.PostAsync(t.Context(), client.Post{Task: "t", Body: strings.ReplaceAll(c.body, "URL", web.url)}); err != nil {
				t.Fatal(err)
			}
			<-web.held
			v.Kill()
			close(web.release)
			v.Start()
			a, err := cl.PostMessage(t.Context(), client.Post{Task: "other", Entrypoint: "boss", Body: web.url + "/other/0"})
			if err != nil || a.Body != "re:/other/0" {
				t.Errorf("another task: %q %v", a.Body, err)
			}
			if got := waitEnd(t, cl, "t"); !strings.Contains(got, c.want) {
				t.Errorf("ended with %q, want %q", got, c.want)
			}
			web.mu.Lock()
			defer web.mu.Unlock()
			asked := map[string]int{} // paths, by their beginning
			for path, keys := range web.keys {
				if asked[strings.Split(path, "/")[1]]++; len(slices.Compact(keys)) != 1 {
					t.Errorf("%s was asked under the keys %q", path, keys)
				}
			}
			for what, n := range asked {
				if n != 1 {
					t.Errorf("%s was asked in %d ways: %v", what, n, web.keys)
				}
			}
		})
	}
}

// A reload of a changed program lets the turns that run end on the old one; new ones
// run on the new.
func TestProgramIsReloaded(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(guests.Program(t, "testguests/fickle"))
	if err != nil {
		t.Fatal(err)
	}
	web, s := newHoldingServer(t), hosttest.EmptySite(t)
	put := func(name string, content []byte) {
		t.Helper()
		fresh := filepath.Join(s.Dir, name+".new")
		if err := errors.Join(os.WriteFile(fresh, content, 0o700), os.Rename(fresh, filepath.Join(s.Dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	put("fickle", program)
	s.Write(strings.NewReplacer("ENTRY", "boss", "URL", web.url).Replace(processSwarm))
	s.Start()
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error("stop:", err)
		}
	}()
	cl := s.As(hosttest.ScriptKey)
	pid := func(path string) string {
		t.Helper()
		a, err := cl.PostMessage(t.Context(), client.Post{Body: web.url + path + "/PID"})
		if err != nil || !strings.HasPrefix(a.Body, "re:"+path) {
			t.Fatalf("%q %v", a.Body, err)
		}
		return strings.TrimPrefix(a.Body, "re:"+path+"/")
	}
	before := pid("/before")
	if _, err := cl.PostAsync(t.Context(), client.Post{Task: "t", Body: web.url + "/t/PID"}); err != nil {
		t.Fatal(err)
	}
	<-web.held
	put("fickle", append(program, '\n')) // the loader does not mind, and the digest is another
	if _, err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := pid("/after")
	close(web.release)
	if got := waitEnd(t, cl, "t"); got != "re:/t/"+before {
		t.Errorf("the old turn ended with %q, and had begun in %s", got, before)
	}
	if after == before {
		t.Errorf("the new turn ran in the old process %s", after)
	}
}

// holdingServer is a web server that answers with the path, and keeps the first request
// under /t/ until it is told to go on.
type holdingServer struct {
	url           string
	held, release chan struct{}

	mu   sync.Mutex
	keys map[string][]string // by path
}

func newHoldingServer(t *testing.T) *holdingServer {
	t.Helper()
	w := &holdingServer{held: make(chan struct{}), release: make(chan struct{}), keys: map[string][]string{}}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *holdingServer) ServeHTTP(rsp http.ResponseWriter, r *http.Request) {
	if n := w.arrive(r); strings.HasPrefix(r.URL.Path, "/t/") && n == 1 {
		close(w.held)
		<-w.release
	}
	_, _ = io.WriteString(rsp, hosttest.AnswerTo(r.URL.Path))
}

// arrive notes a request and counts those that have come for a held path.
func (w *holdingServer) arrive(r *http.Request) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[r.URL.Path] = append(w.keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
	for path, keys := range w.keys {
		if strings.HasPrefix(path, "/t/") {
			n += len(keys)
		}
	}
	return n
}

// waitEnd waits for a task's end and returns what it ended with.
func waitEnd(t *testing.T, c *client.Client, id string) string {
	t.Helper()
	if err := hosttest.Follow(t.Context(), c, id); err != nil {
		t.Errorf("events: %v", err)
	}
	task, err := c.Task(t.Context(), id)
	if err != nil {
		t.Error(err)
	}
	return task.Answer
}
