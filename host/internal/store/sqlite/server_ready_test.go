package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"skep/host/internal/store/pgtest"
)

// TestServerReady: a host whose server is away, or acknowledges nothing, is not ready until it
// is back.
func TestServerReady(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openTestServer(t, server.DSN())
	if err := s.Ready(t.Context()); err != nil {
		t.Error("Ready() =", err)
	}
	server.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Ready(ctx); !errors.Is(err, errAway) {
		t.Error("Ready() without a server =", err)
	}
	server.Start(t)
	if err := s.Ready(t.Context()); err != nil {
		t.Error("Ready() =", err)
	}
	s.writer.database.(*serverDatabase).since.Store(1)
	if err := s.Ready(t.Context()); !errors.Is(err, errStuck) {
		t.Error("Ready() with a group that hangs =", err)
	}
	copiedSteps(t, s, 0, 1)
	if err := s.Ready(t.Context()); err != nil {
		t.Error("Ready() after a group =", err)
	}
	if err := openTest(t, t.TempDir()).Ready(t.Context()); err != nil {
		t.Error("Ready() of a file =", err)
	}
}
