package security_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// A host with an agent in quarantine and messages for a swarm that does not answer is
// ready, and warns of both.
func TestReadyTellsOfQuarantineAndOutbox(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	file := strings.NewReplacer("NAME", "hive", "TARGETS", `"*@*"`, "file:script.wasm", "bundled:script").Replace(hosttest.FederatedSwarm) +
		"[peers.depot]\nbase_url = \"http://127.0.0.1:1\"\nauth_token = \"the-token-of-hive\"\n"
	confined := `{"version":1,"agents":[{"tenant":"default","swarm":"hive","agent":"math","since":"2026-11-20T12:00:00Z","why":"a test"}]}`
	for path, text := range map[string]string{filepath.Join(dir, "swarm.toml"): file, filepath.Join(data, "quarantine.json"): confined} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), data)
	t.Cleanup(func() { _ = h.Stop() })
	h.Key = hosttest.AliceKey
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // no answer comes
	for i := range 5 {
		go func() {
			_, _ = h.Client(t).PostMessage(ctx, client.Post{Body: hosttest.RequestOf("math@depot", "x"), Task: fmt.Sprint("t-", i)})
		}()
	}
	hosttest.Eventually(t, "the messages wait", func() bool {
		rsp, text := hosttest.Fetch(t, http.DefaultClient, "http://"+h.AdminAddr()+"/readyz")
		return rsp.StatusCode == http.StatusOK && strings.Contains(text, `tasks wait for "depot", which does not answer`) &&
			strings.Contains(text, `warning: 1 agents are in quarantine, first "math" of swarm "hive" of tenant "default"; skep agent quarantine lists them`)
	})
	if text := h.Metrics(t); !strings.Contains(text, "\nskep_agents_quarantined 1\n") {
		t.Error("the metrics do not count the agent in quarantine")
	}
}
