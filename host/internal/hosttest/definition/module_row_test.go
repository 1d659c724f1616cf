package definition_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// TestModuleOfLostHost: a task that waits for a person goes on with the module that it was begun with on another
// machine, whose file has another module of that name, after the first one is gone with its data directory.
func TestModuleOfLostHost(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	dsn := pgtest.Schema(t)
	onServer := func(o *host.Options) {
		o.Config.Store.Driver, o.Config.Store.DSN, o.Config.Store.Durability = config.DriverPostgres, config.Secret(dsn), config.DurabilityLocal
		o.Config.Store.Keyring = config.Secret(strings.Repeat("5e", 32))
	}
	lost := hosttest.NewSite(t, pausingSwarm, onServer)
	ask(t, lost, "old", pausedScript, `[{"arguments"`)
	if err := lost.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{lost.Data, lost.Dir} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	other := hosttest.EmptySite(t)
	if err := os.WriteFile(filepath.Join(other.Dir, "script.wasm"), guests.Bytes(t, "plugins/calculator"), 0o600); err != nil {
		t.Fatal(err)
	}
	other.Write(pausingSwarm)
	other.StartWith(onServer)
	if got := confirm(t, other.Addr(), hosttest.AdaKey, "old"); got != "boss got [Re: s] echo: hello" {
		t.Errorf("resumed: %q", got)
	}
	if err := errors.Join(other.Stop(), os.RemoveAll(filepath.Join(other.Data, "modules"))); err != nil {
		t.Fatal(err)
	}
	cfg, err := other.Load()
	if err != nil {
		t.Fatal(err)
	}
	onServer(&host.Options{Config: cfg})
	turns, err := datadir.Replay(t.Context(), datadir.ReplayOptions{Config: cfg, DataDir: other.Data, CacheDir: guests.CacheDir(t), Task: "old"})
	if err != nil || len(turns) == 0 {
		t.Fatalf("%d turns are replayed without a file: %v", len(turns), err)
	}
	for _, turn := range turns {
		if turn.Skipped != "" || turn.Difference != "" {
			t.Errorf("turn %d: %s%s", turn.Turn, turn.Skipped, turn.Difference)
		}
	}
}
