package mailtest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
)

// Tokens of the principals every world knows.
const (
	alice = "alice-token-0000001"
	bob   = "bob-token-000000001"
	ada   = "ada-token-000000001"
	depot = "depot-token-0000001"
)

// hive is the swarm of every world. The entrypoint is boss; desk is a second one
// that cannot complete tasks, vice completes but is no entrypoint.
const hive = `
[agents.boss]
source = "bundled:script"
comm_targets = ["math", "text", "vice"]
enable_entrypoint = true
can_complete_tasks = true
[agents.math]
source = "bundled:script"
comm_targets = ["boss", "text@hive"]
limits = { fuel = 200_000_000 }
[agents.text]
source = "bundled:script"
comm_targets = ["boss"]
[agents.vice]
source = "bundled:script"
comm_targets = ["boss", "math", "text"]
can_complete_tasks = true
[agents.desk]
source = "bundled:script"
comm_targets = ["boss", "math"]
enable_entrypoint = true
[[auth.keys]]
id = "alice"
role = "user"
key = "` + alice + `"
[[auth.keys]]
id = "bob"
role = "user"
key = "` + bob + `"
[[auth.keys]]
id = "ada"
role = "admin"
key = "` + ada + `"
[[auth.keys]]
id = "depot"
role = "agent"
key = "` + depot + `"
`

// oneTurn lets one turn at a time run in each instance, so that a turn which
// sleeps is a gate for all others.
const oneTurn = "[limits]\nturns = 1\n"

// world is a host on a data directory, and who speaks to it.
type world struct {
	t         *testing.T
	me, token string
	file, url string
	stop      func()
}

// newWorld starts a host. swarm are more keys of [swarm], tables more tables.
func newWorld(t *testing.T, swarm, tables string) *world {
	t.Helper()
	return newWorldOf(t, swarm, hive, tables)
}

func newWorldOf(t *testing.T, swarm, agents, tables string) *world {
	t.Helper()
	w := &world{t: t, me: "alice", token: alice, file: write(t, t.TempDir(), swarm+agents+tables)}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// write writes a swarm.toml.
func write(t *testing.T, dir, text string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "swarm.toml")
	text = "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"boss\"\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, file string) (*config.Config, error) {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds all guests if it must
	return config.Load(file, config.Options{BundleDir: filepath.Join(guests.Root(), "bin", "plugins")})
}

func (w *world) start() {
	w.t.Helper()
	url, stop := launch(w.t, w.file)
	w.url = url
	w.stop = sync.OnceFunc(func() {
		if err := stop(); err != nil {
			w.t.Error("Run:", err)
		}
	})
}

// launch runs a host in this process.
func launch(t *testing.T, file string) (url string, stop func() error) {
	t.Helper()
	cfg, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h, err := host.New(ctx, host.Options{Config: cfg, CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "off"})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	return "http://" + h.Addr(), func() error { cancel(); return <-done }
}

// restart stops the host and starts another one on its data.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// reply is what the host answers.
type reply struct {
	status int
	header http.Header
	body   string
}

// patience bounds every wait of a test; it is never reached unless something
// hangs.
const patience = 2 * time.Minute

// open sends a request and leaves the answer's body unread.
func (w *world) open(ctx context.Context, token, method, path, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(r)
}

func (w *world) do(token, method, path, body string, header ...string) reply {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rsp, err := w.open(ctx, token, method, path, body, header...)
	if err != nil {
		w.t.Error(err)
		return reply{}
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return reply{rsp.StatusCode, rsp.Header, string(raw)}
}

type obj = map[string]any

// post posts a message as the world's user.
func (w *world) post(fields obj, header ...string) reply {
	w.t.Helper()
	return w.postAs(w.token, fields, header...)
}

func (w *world) postAs(token string, fields obj, header ...string) reply {
	w.t.Helper()
	return w.do(token, http.MethodPost, "/message", encode(fields), header...)
}

// accept posts and does not wait for the answer.
func (w *world) accept(fields obj) {
	w.t.Helper()
	w.acceptAs(w.token, fields)
}

func (w *world) acceptAs(token string, fields obj) {
	w.t.Helper()
	if r := w.postAs(token, fields, "Prefer", "respond-async"); r.status != http.StatusAccepted {
		w.t.Fatalf("post %v: %d %s", fields, r.status, r.body)
	}
}

// ask posts and returns the response.
func (w *world) ask(fields obj) string {
	w.t.Helper()
	return w.post(fields).response(w.t)
}

func (r reply) response(t *testing.T) string {
	t.Helper()
	var body struct{ Response string }
	if r.status != http.StatusOK || json.Unmarshal([]byte(r.body), &body) != nil {
		t.Errorf("answer %d %s", r.status, r.body)
	}
	return body.Response
}

func (r reply) subject() string { return r.header.Get("X-MAIL-Finish-Subject") }

// hold occupies the only turn of the user's instance until the function it returns
// is called. The world must be made with oneTurn.
func (w *world) hold() (release func()) { return w.holdAs(w.token) }

func (w *world) holdAs(token string) (release func()) {
	w.t.Helper()
	w.acceptAs(token, obj{"task_id": "gate", "body": script("sleep", obj{"ms": 6e5})})
	return func() {
		w.t.Helper()
		if r := w.cancelAs(token, "gate"); r.status != http.StatusAccepted {
			w.t.Errorf("release: %d %s", r.status, r.body)
		}
	}
}

func (w *world) cancel(task string) reply { return w.cancelAs(w.token, task) }

func (w *world) cancelAs(token, task string) reply {
	w.t.Helper()
	return w.do(token, http.MethodPost, "/skep/v1/tasks/"+task+"/cancel", "")
}

// eventually polls a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("it never came to this: " + what)
		}
	}
}

// script is the body that makes an agent call tools: name and arguments in turn.
func script(pairs ...any) string {
	list := [][2]any{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, [2]any{pairs[i], pairs[i+1]})
	}
	return encode(list)
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
