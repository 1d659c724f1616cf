package isolation

import (
	"context"
	"path/filepath"
	"testing"

	"skep/host/internal/guests"
)

func options(t *testing.T) Options {
	t.Helper()
	guests.Bytes(t, "plugins/script") // builds it when it is stale
	return Options{Plugins: filepath.Join(guests.Root(), "bin", "plugins"), CacheDir: guests.CacheDir(t)}
}

// Nothing comes of any attempt.
func TestRun(t *testing.T) {
	report, err := Run(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Attempts {
		if !a.Pass {
			t.Errorf("%s (%s): %s", a.Name, a.About, a.Detail)
		}
	}
	if report.Passed != len(report.Attempts) || report.Passed < 30 {
		t.Errorf("%d of %d attempts passed", report.Passed, len(report.Attempts))
	}
}

// Attempts of one who can do what the other can do are seen for what they are.
func TestAttemptsCanFail(t *testing.T) {
	report, err := run(t.Context(), options(t), func(x *trial) { x.keys.hostile = x.keys.victim })
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, a := range report.Attempts {
		failed[a.Name] = !a.Pass && a.Detail != ""
	}
	for _, name := range []string{
		"list", "idempotency", "same-task", "forged-tenant", "task-user", "record-user", "history-user", "events-user",
		"cancel-user", "continue-user", "kv-read", "kv-write", "blob", "history", "timer", "emit", "log", "quota-tasks", "quota-queue",
		"victim", "heard",
	} {
		if !failed[name] {
			t.Errorf("%s passed where nothing keeps the two apart", name)
		}
	}
}

func TestRunWithoutModules(t *testing.T) {
	if _, err := Run(t.Context(), Options{Plugins: t.TempDir()}); err == nil {
		t.Error("a host without modules has proved something")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, options(t)); err == nil {
		t.Errorf("a self-test that was called off reports %d passed", r.Passed)
	}
}
