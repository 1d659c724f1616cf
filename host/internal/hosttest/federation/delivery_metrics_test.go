package federation_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// The metrics count what became of outbox messages, by the swarm they are for.
func TestDeliveryMetrics(t *testing.T) {
	t.Parallel()
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/interswarm/") {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write([]byte(`{"detail":"no"}`))
	}))
	t.Cleanup(peer.Close)
	dir := t.TempDir()
	file := strings.NewReplacer("NAME", "hive", "TARGETS", `"*@*"`, "file:script.wasm", "bundled:script").Replace(hosttest.FederatedSwarm) +
		fmt.Sprintf("[peers.depot]\nbase_url = %q\nauth_token = \"the-token-of-hive\"\n", peer.URL)
	if err := os.WriteFile(filepath.Join(dir, "swarm.toml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hosttest.Start(t, filepath.Join(dir, "swarm.toml"), t.TempDir())
	t.Cleanup(func() { _ = h.Stop() })
	h.Key = hosttest.AliceKey
	a, err := h.Client(t).PostMessage(t.Context(), client.Post{Body: hosttest.RequestOf("math@depot", "x"), Task: "t"})
	if err != nil || !strings.Contains(a.Body, "::router_error::") {
		t.Fatalf("%+v, %v", a, err)
	}
	_, body := hosttest.Fetch(t, http.DefaultClient, "http://"+h.AdminAddr()+"/metrics")
	for _, line := range []string{
		`skep_letter_attempts_total{peer="depot"} 1`, `skep_letters_delivered_total{peer="depot"} 0`, `skep_letters_dead_total{peer="depot"} 1`,
		`skep_letter_outboxes{peer="depot"} `, `skep_peer_breaker{peer="depot"} 0`,
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("the metrics lack %s:\n%s", line, body)
		}
	}
}
