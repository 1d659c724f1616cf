package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

const processActionFile = `schema = 1
[swarm]
name = "shop"
entrypoint = "lead"
[agents.lead]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
actions = ["echo", "run"]
allow = { kv = "instance" }
[agents.worker]
source = "exec:conform"
trusted = true
comm_targets = ["lead"]
[actions.echo]
source = "SOURCE"
[actions.run]
source = "SOURCE"
actions = ["echo", "run"]
allow = { kv = "instance" }
params = { shop = "north" }
timeout = "500ms"
[server]
debug = true
`

// processActionDir holds a swarm whose actions run in a process or in a module, and
// an agent that runs in a process in any case.
func processActionDir(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	text := strings.ReplaceAll(processActionFile, `source = "SOURCE"`, source)
	for name, content := range map[string][]byte{
		"swarm.toml": []byte(text), "conform": hosttest.ConformProgram(t), "conform.wasm": guests.Bytes(t, "testguests/conform"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "swarm.toml")
}

// manyActions calls actions in every way that ends differently: with ops and actions
// within, deeper than is allowed, with an error of its own, too late, and with what
// is refused.
const manyActions = `[["echo",{"n":1e3}],
	["run",{"commands":[["params",{}],["call",{"op":21,"request":{"scope":"instance","key":"k","value":"put"}}],["action",{"name":"echo","args":{"a":[1]}}],["send_request",{"target":"x","subject":"s","body":"b"}],["log",{"level":"info","message":"m"}]]}],
	["kv.get",{"scope":"instance","key":"k"}],
	["run",{"commands":[["call",{"op":21,"request":{"scope":"instance","key":"lost","value":"x"}}],["fail",{"code":8,"message":"sold out"}]]}],
	["kv.get",{"scope":"instance","key":"lost"}],
	["run",{"commands":[["sleep",{"ms":60000}]]}],
	["run",{"n":1}],["http.fetch",{"url":"http://a/"}],
	["task_complete",{"finish_message":"{{0}}; {{1}}; {{2}}; {{3}}; {{4}}; {{5}}; {{6}}"}]]`

// An action that runs in a process answers, fails and is refused with the words of
// one in a module, and a replay of the turn that called it repeats.
func TestActionsAtBothLevels(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	for level, source := range map[string]string{"module": `source = "file:conform.wasm"`, "process": "source = \"exec:conform\"\ntrusted = true"} {
		file, data := processActionDir(t, source), t.TempDir()
		h := hosttest.Start(t, file, data)
		got, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Body: manyActions})
		if err != nil {
			t.Fatal(level, err)
		}
		answers[level] = got.Body
		wantTrusted(t, h, "worker")
		if err := h.Stop(); err != nil {
			t.Error(level, err)
		}
		hosttest.Replay(t, file, data)
	}
	for _, want := range []string{
		`{"action":"echo","args":{"n":1e3}}; ["{\"shop\":\"north\"}","{}","{\"action\":\"echo\",\"args\":{\"a\":[1]}}","ERROR DENIED mail action`,
		"; put; ", "failed to execute action tool: CONFLICT: sold out", `no key "lost"`, "it took longer than the 500ms of [actions.run] timeout", "no command list",
	} {
		if !strings.Contains(answers["process"], want) {
			t.Errorf("no %q in %s", want, answers["process"])
		}
	}
	if answers["module"] != answers["process"] {
		t.Errorf("as a module  %s\nas a process %s", answers["module"], answers["process"])
	}
}

// wantTrusted wants the agents given to be marked as outside the sandbox, and no
// others.
func wantTrusted(t *testing.T, h *hosttest.Host, names ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr()+"/ui/agents", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Key)
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	var shown struct {
		Agents []struct {
			Name    string
			Trusted bool
		}
	}
	if err != nil || json.Unmarshal(raw, &shown) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var marked []string
	for _, a := range shown.Agents {
		if a.Trusted {
			marked = append(marked, a.Name)
		}
	}
	if strings.Join(marked, " ") != strings.Join(names, " ") {
		t.Errorf("trusted are %q, want %q: %s", marked, names, raw)
	}
}
