//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// TestCloseBesideFrozenServer: a store whose server stands still closes in a bounded time. Writes that wait,
// also for a key, are refused, and what was acknowledged is there afterwards.
func TestCloseBesideFrozenServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	opts := Options{Keyring: &keyring.Options{KEK: testKEK(1)}}
	s, err := OpenServer(t.Context(), Server{DSN: server.DSN()}, opts)
	mustDo(t, err)
	copiedSteps(t, s, 0, 1)
	server.Freeze(t)
	const waiting = 20
	refused := make(chan error, waiting)
	for i := range waiting {
		go func() {
			task := fmt.Sprint("t", i+1)
			_, err := s.Accept(t.Context(), testStep(task, 1), testPost(task, 1))
			refused <- err
		}()
	}
	for s.writer.database.(*serverDatabase).since.Load() == 0 { // the writer is at work
		time.Sleep(time.Millisecond)
	}
	closed := make(chan struct{})
	go func() {
		_ = s.Close() // it may tell of the server
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(3 * time.Minute):
		server.Kill(t)
		t.Fatal("Close() waits for a frozen server")
	}
	for range waiting {
		if err := <-refused; !errors.Is(err, swarm.ErrUnavailable) && !errors.Is(err, ErrClosed) {
			t.Errorf("Accept() = %v", err)
		}
	}
	server.Thaw(t)
	s, err = OpenServer(t.Context(), Server{DSN: server.DSN()}, opts)
	mustDo(t, err)
	defer s.Close()
	if _, err := s.Load(t.Context(), testKey("t0")); err != nil {
		t.Errorf("Load() of what was acknowledged = %v", err)
	}
}
