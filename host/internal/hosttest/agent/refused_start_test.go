package agent_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/definition/config"
	"skep/host/internal/hosttest"
)

// TestLogOfRefusedStart: why a host does not start reaches the collector, as all of its log.
func TestLogOfRefusedStart(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "it damages a data directory")
	collector, dir := hosttest.StartCollector(t), t.TempDir()
	text := fmt.Sprintf(`schema = 1
[swarm]
name = "shop"
entrypoint = "lead"
[agents.lead]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
[server]
listen = "127.0.0.1:0"
admin_listen = "127.0.0.1:0"
[telemetry]
endpoint = %q
logs = true
`, collector.URL)
	data := filepath.Join(dir, "data")
	for name, content := range map[string]string{"swarm.toml": text, "data/skep.db": "no database"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "swarm.toml"), config.Options{BundleDir: hosttest.Bundles()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = host.New(t.Context(), host.Options{Config: cfg, DataDir: data, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err == nil {
		t.Fatal("a host starts on a damaged database")
	}
	records := collector.Logs() // they have been sent before New returns
	if len(records) == 0 || records[len(records)-1].Body != "the host does not start" || !strings.Contains(err.Error(), records[len(records)-1].Attributes["error"]) {
		t.Errorf("%v: the collector has %+v", err, records)
	}
}
