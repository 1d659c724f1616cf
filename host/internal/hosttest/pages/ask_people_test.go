package pages_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// TestAskPeoplePage: the commands of the page go with its file, one after the other, and print
// what it shows.
func TestAskPeoplePage(t *testing.T) {
	t.Parallel()
	page, p := hosttest.ReadText(t, "../../../docs/ask-people.md"), install(t)
	_, rest, _ := strings.Cut(page, "```toml\n")
	text, _, _ := strings.Cut(rest, "```")
	text = strings.ReplaceAll(text, "bundled:script", "file:script.wasm")
	_, rest, _ = strings.Cut(page, "```toml\n[questions]\n")
	table, _, _ := strings.Cut(rest, "```")
	var told atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && bytes.Contains(body, []byte(`"agent":"supervisor","calls":[{"call_id":"t1.c1","action":"confirm_order"}]`)) {
			told.Add(1)
		}
	}))
	defer hook.Close()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	table = "[questions]\n" + strings.Replace(table, "https://hooks.example/skep", hook.URL, 1)
	h, _ := hosttest.StartText(t, text+table, map[string]string{"QUESTIONS_SECRET": secret})
	dir := t.TempDir()
	for name, data := range map[string]string{"swarm.toml": text + table, "script.wasm": string(guests.Bytes(t, "plugins/script"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".skep"), 0o700); err != nil { // the host's own is elsewhere
		t.Fatal(err)
	}
	tried := 0
	for _, s := range consolesIn(page) {
		if strings.HasPrefix(s.command, "skep serve") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "PATH="+filepath.Dir(p.path)+":$PATH; "+s.command)
		cmd.Dir = dir
		cmd.Env = append(p.env[:len(p.env):len(p.env)], "SKEP_URL="+h.URL(), "SKEP_TOKEN="+h.Key, "QUESTIONS_SECRET="+secret)
		if out, err := cmd.Output(); err != nil || s.output != "" && !s.matches(string(out)) {
			t.Errorf("$ %s\n%s%v, want\n%s", s.command, out, err, s.output)
		}
		tried++
	}
	if tried != 8 {
		t.Errorf("%d commands", tried)
	}
	hosttest.Eventually(t, "the webhook is told of both tasks", func() bool { return told.Load() == 2 })
}
