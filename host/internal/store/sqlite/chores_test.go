package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// onError is a handler of log lines that calls fix at the first error.
type onError struct {
	slog.Handler
	fix func()
}

func (h *onError) Enabled(context.Context, slog.Level) bool { return true }

func (h *onError) Handle(_ context.Context, r slog.Record) error {
	if fix := h.fix; r.Level == slog.LevelError && fix != nil {
		h.fix = nil
		fix()
	}
	return nil
}

// statement is a change of the schema.
type statement string

func (statement) bytes() int { return 0 }

func (text statement) apply(ctx context.Context, t *tables) (steps int, err error) {
	_, err = t.conn.ExecContext(ctx, string(text))
	return 0, err
}

// What an earlier host has left undone is tried again when the store has failed for a
// moment: a tenant is not locked out until the next start. What was done meanwhile is not
// done once more to the tenant that has begun anew.
func TestChoresAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	plant(t, s, "acme", "t1", "m")
	c := chore{choreErase, "acme"}
	mustDo(t, s.writer.submit(t.Context(), choreNote{c}))
	execute := func(text statement) {
		if err := s.writer.submit(t.Context(), text); err != nil {
			t.Error(err)
		}
	}
	failed := false
	execute("ALTER TABLE gateway_realms RENAME TO away")
	s.resume(t.Context(), slog.New(&onError{Handler: slog.DiscardHandler, fix: func() {
		failed = true
		execute("ALTER TABLE away RENAME TO gateway_realms")
	}}), []chore{c})
	s.chores.stopped.Wait()
	if kept, err := s.HasData(t.Context(), "acme"); kept || err != nil || !failed || s.isErasing("acme") {
		t.Errorf("kept %v, failed %v, still being erased %v, %v", kept, failed, s.isErasing("acme"), err)
	}
	plant(t, s, "acme", "t1", "m")
	mustDo(t, s.run(t.Context(), c))
	if kept, err := s.HasData(t.Context(), "acme"); !kept || err != nil {
		t.Errorf("it has begun anew and keeps its data: %v, %v", kept, err)
	}
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	if _, err := s.Load(t.Context(), swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "acme"}, Task: "t1"}); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("after an erasure: %v", err)
	}
}

// blockade is a change that holds the writer up until its end is closed.
type blockade struct{ began, end chan struct{} }

func (blockade) bytes() int { return 0 }

func (b blockade) apply(context.Context, *tables) (steps int, err error) {
	close(b.began)
	<-b.end
	return 0, nil
}

// An operator's erasure that waits for the last step of an earlier host's one refuses
// writes until its own end.
func TestEraseBesideTheEndOfAnother(t *testing.T) {
	t.Parallel()
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	plant(t, s, "acme", "t1", "m")
	s.chores.mu.Lock() // as the earlier erasure has it
	erased := make(chan error, 1)
	go func() { erased <- s.Erase(t.Context(), "acme") }()
	waitFor(t, func() (noted bool) {
		mustDo(t, s.readers.db.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM chores)").Scan(&noted))
		return noted
	})
	s.setErasing("acme", false)
	held, blocked := blockade{make(chan struct{}), make(chan struct{})}, make(chan error, 1)
	go func() { blocked <- s.writer.submit(t.Context(), held) }()
	<-held.began
	release := sync.OnceFunc(func() { close(held.end) })
	t.Cleanup(release)
	s.chores.mu.Unlock()
	waitFor(t, func() bool { return s.isErasing("acme") })
	release()
	mustDo(t, <-blocked)
	mustDo(t, <-erased)
	if kept, err := s.HasData(t.Context(), "acme"); kept || err != nil || s.isErasing("acme") {
		t.Errorf("kept %v, still being erased %v, %v", kept, s.isErasing("acme"), err)
	}
}

// waitFor waits until something holds, a minute at most.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it does not come to hold within a minute")
		}
	}
}
