package cluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/hosttest"
)

// TestSharedQuarantine: an agent that one host has in quarantine, here by the file of an earlier
// version, is so at the others, too, until another one releases it.
func TestSharedQuarantine(t *testing.T) {
	t.Parallel()
	hosts := hostsOf(t, 2)
	for _, h := range hosts {
		h.Client()
	}
	last := hosts[1]
	last.Kill()
	const confined = `{"version":1,"agents":[{"tenant":"default","swarm":"hive","agent":"boss","since":"2026-11-20T12:00:00Z","why":"a test"}]}`
	if err := os.WriteFile(filepath.Join(last.Data(), "quarantine.json"), []byte(confined), 0o600); err != nil {
		t.Fatal(err)
	}
	last.Start()
	last.Client()
	wantConfined(t, hosts, true)
	if err := hosts[0].ClientAs(operatorKey).ReleaseAgent(t.Context(), "", "boss"); err != nil {
		t.Fatal(err)
	}
	wantConfined(t, hosts, false)
}

// wantConfined wants hosts to say with their next beat whether the agent is in quarantine.
func wantConfined(t *testing.T, hosts []*hosttest.Process, want bool) {
	t.Helper()
	for _, h := range hosts {
		hosttest.Eventually(t, "the host at "+h.Addr+" reads the quarantine again", func() bool {
			_, text := hosttest.Fetch(t, http.DefaultClient, "http://"+h.Admin()+"/readyz")
			return strings.Contains(text, `1 agents are in quarantine, first "boss"`) == want
		})
	}
}
