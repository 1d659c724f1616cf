//go:build unix

package postgres

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
)

// stopTime is far more than a stop takes that waits for each answer [stopLimit] at most.
const stopTime = 3 * time.Minute

// safeLog is a log that several goroutines write.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestStopBesideFrozenServer: a host that stops waits a bounded time for a server that takes its connections and
// says nothing: for the group that it commits, for those behind it, and to close. What was acknowledged is there.
func TestStopBesideFrozenServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	c, log := connector(t, s.DSN()), &safeLog{}
	c.Logger, c.Shared = slog.New(slog.NewTextHandler(log, nil)), true
	w, idle := openWriter(t, c), openWriter(t, c)
	if err := w.write(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Freeze(t)
	ended := make(chan error, 3)
	go func() {
		for n := range int64(2) {
			ended <- w.try(t.Context(), n+2)
		}
		w.close()
		_ = idle.add.Close()
		idle.close()
		ended <- nil
	}()
	w.StopWaiting() // both have its connector
	late := time.After(stopTime)
	for n := range 3 {
		select {
		case err := <-ended:
			if n < 2 && (err == nil || !IsAway(err) || errors.Is(err, ErrFenced) || errors.Is(err, ErrLost)) {
				t.Errorf("a group that a frozen server has not taken: %v", err)
			}
		case <-late:
			s.Thaw(t) // so that the writer ends
			t.Fatal("the stop waits for a frozen server")
		}
	}
	if !strings.Contains(log.String(), "the host stops and waits no longer for its PostgreSQL server") {
		t.Errorf("the log does not tell of the server: %s", log)
	}
	s.Thaw(t)
	after := openWriter(t, connector(t, s.DSN()))
	if err := after.write(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if row, err := after.ask(t.Context(), "SELECT count(*) FROM numbers WHERE n IN (1, 4)"); err != nil || row[0] != 2 {
		t.Errorf("acknowledged numbers: %v of 2, %v", row, err)
	}
}

// TestStopWithoutStandby: a host that stops waits a bounded time for a commit that no standby confirms.
func TestStopWithoutStandby(t *testing.T) {
	t.Parallel()
	pair := pgtest.StartPair(t, true)
	w := openWriter(t, connector(t, pair.Primary.DSN()))
	pair.Standby.Kill(t)
	ended := make(chan error, 1)
	go func() {
		ended <- w.try(t.Context(), 1)
		w.close()
		close(ended)
	}()
	w.StopWaiting()
	late := time.After(stopTime)
	for range 2 {
		select {
		case err, more := <-ended:
			if more && (err == nil || !IsAway(err)) {
				t.Errorf("a group that no standby has: %v", err)
			}
		case <-late:
			pair.Primary.Kill(t)
			t.Fatal("the stop waits for a standby that is not there")
		}
	}
}
