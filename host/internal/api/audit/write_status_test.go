package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
)

// A log that cannot be written reports it, tries again without new acts, and then
// records how many acts are missing.
func TestTrouble(t *testing.T) {
	t.Parallel()
	l, path, _ := running(t, audit.Options{Every: time.Millisecond})
	record(t, l, 1)
	if err := l.LastError(); err != nil || l.Failures() != 0 {
		t.Fatalf("a log that is well: %v, %d", err, l.Failures())
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Record(audit.Entry{Act: "tenant.erase"}); err == nil {
			t.Fatal("an entry was written to a directory")
		}
	}
	if err := l.LastError(); err == nil || !strings.Contains(err.Error(), path) || l.Failures() < 2 {
		t.Errorf("Trouble = %v after %d failures", err, l.Failures())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// A gap may take two entries; the second comes a moment later.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		missed := int64(0)
		err := audit.Entries(path, func(_ int64, e audit.Entry) {
			if e.Act == "audit.gap" {
				missed += max(e.Count, 1)
			}
		}, nil)
		if err == nil && missed == 2 && l.LastError() == nil {
			return
		}
		if time.Now().After(end) || missed > 2 {
			t.Fatalf("the log says that %d acts are missing, %v, %v:\n%s", missed, err, l.LastError(), read(t, path))
		}
	}
}

// The acts of a failure are counted when its error can be seen: the entry about the gap
// would otherwise count none.
func TestMissedBeforeError(t *testing.T) {
	t.Parallel()
	logged := &missedAtError{}
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{Logger: slog.New(logged)})
	logged.log = l
	l.Break()
	if err := l.Record(audit.Entry{Act: "tenant.erase"}); err == nil {
		t.Fatal("a broken log takes entries")
	}
	if logged.missed != 1 {
		t.Errorf("%d acts are missing when the failure is logged, want 1", logged.missed)
	}
}

// missedAtError notes how many acts are missing when the log tells a failure.
type missedAtError struct {
	slog.Handler
	log    *audit.Log
	missed int64
}

func (m *missedAtError) Enabled(context.Context, slog.Level) bool { return true }
func (m *missedAtError) WithAttrs([]slog.Attr) slog.Handler       { return m }

func (m *missedAtError) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		m.missed = m.log.Missed()
	}
	return nil
}

// A log that was closed is in no trouble.
func TestClosedIsNoTrouble(t *testing.T) {
	t.Parallel()
	l := open(t, filepath.Join(t.TempDir(), audit.Name), audit.Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(audit.Entry{Act: "a"}); err == nil {
		t.Fatal("a closed log takes entries")
	}
	if err := l.LastError(); err != nil || l.Failures() != 0 {
		t.Errorf("%v, %d", err, l.Failures())
	}
}
