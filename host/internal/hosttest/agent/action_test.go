package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

const actionFile = `schema = 1
[swarm]
name = "shop"
entrypoint = "lead"
[agents.lead]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
actions = ["echo", "http_get"]
[actions.echo]
source = "file:conform.wasm"
[actions.http_get]
source = "bundled:http"
allow = { http = ["%s/open"], http_private = true }
`

// actionDir holds a swarm whose actions have code.
func actionDir(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{"swarm.toml": []byte(text), "conform.wasm": guests.Bytes(t, "testguests/conform")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "swarm.toml")
}

// An agent calls actions of modules it does not run on: each has its own grants,
// and its arguments are checked.
func TestActionsWithCode(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("it is " + r.URL.Path)) }))
	defer web.Close()
	file := actionDir(t, fmt.Sprintf(actionFile, web.URL))
	data := t.TempDir()
	h := hosttest.Start(t, file, data)
	body := fmt.Sprintf(`[["echo",{"n":1}],["http_get",{"url":"%[1]s/open/a"}],["http_get",{"url":"%[1]s/shut"}],["http_get",{"uri":"x"}],["http_post",{}],["http.fetch",{"url":"%[1]s/open"}],
		["task_complete",{"finish_message":"{{0}}; {{1}}; {{2}}; {{3}}; {{4}}; {{5}}"}]]`, web.URL)
	got, err := h.Client(t).PostMessage(t.Context(), client.Post{Task: "t", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"action":"echo","args":{"n":1}}; "it is /open/a"; `, "failed to execute action tool: DENIED", "[actions.http_get]", "url: is missing",
		`agent "lead" has no action "http_post"`, "[agents.lead]",
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("no %q in %s", want, got.Body)
		}
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	hosttest.Replay(t, file, data)
}

// A file whose actions cannot run is refused, at the line that decides.
func TestActionFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"no such action": {"[actions.echo]", "[actions.call]", `the module conform has no action "call"; it has "echo"`},
		"no grant":       {`allow = { http = ["%s/open"], http_private = true }`, "", "add to [actions.http_get]: allow = { http ="},
		"private":        {", http_private = true", "", "http_private = true } in [actions.http_get]"},
		"bad parameters": {`source = "file:conform.wasm"`, "source = \"file:conform.wasm\"\nparameters = { dependencies = {} }", "is not a keyword that is known to work"},
		"memory":         {`source = "file:conform.wasm"`, "source = \"file:conform.wasm\"\nlimits = { memory = \"64KiB\" }", "raise [actions.echo] limits.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(strings.Replace(actionFile, c.old, c.new, 1), `"echo", "http_get"`, "", 1)
			text = strings.ReplaceAll(text, "%s", "http://127.0.0.1:1")
			file := actionDir(t, text)
			cfg, err := config.Load(file, config.Options{BundleDir: hosttest.Bundles()})
			if err != nil {
				t.Fatal(err)
			}
			_, err = host.New(t.Context(), host.Options{Config: cfg, DataDir: t.TempDir(), CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "off"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
