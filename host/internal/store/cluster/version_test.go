package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"skep/host/internal/store/pgtest"
)

// raise raises a version as a host's group does; without a notice nothing wakes the hosts.
func raise(t *testing.T, dsn, version string, wake bool) {
	t.Helper()
	change(t, dsn, "INSERT INTO changes AS v VALUES ('"+version+"', 1) ON CONFLICT (name) DO UPDATE SET n = v.n + 1")
	if wake {
		change(t, dsn, "SELECT pg_notify('skep', current_schema())")
	}
}

// TestVersion: what has changed is read with the next beat, again when it fails, and not when
// nothing has changed.
func TestVersion(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	h := joinHost(t, dsn)
	reads, failing := 0, error(nil)
	h.Watch("tokens", func(context.Context) error {
		reads++
		return failing
	})
	beat := func(wantReads int, wantCurrent bool) {
		t.Helper()
		h.pass(testBeat)
		if err := h.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.readStale(t.Context(), "tokens", h.watched["tokens"])
		if reads != wantReads || h.IsCurrent("tokens") != wantCurrent {
			t.Errorf("it was read %d times, want %d; it is current: %v, want %v", reads, wantReads, h.IsCurrent("tokens"), wantCurrent)
		}
	}
	if h.IsCurrent("tokens") {
		t.Error("what was never read is current")
	}
	beat(1, true)
	beat(1, true)
	raise(t, dsn, "tokens", false)
	raise(t, dsn, "other", false)
	beat(2, true)
	beat(2, true)
	failing = errors.New("the server is away")
	raise(t, dsn, "tokens", false)
	for i := range int(testTTL/testBeat) - 1 {
		beat(3+i, true) // what was current a moment ago
	}
	reads = 0
	beat(1, false)
	failing = nil
	beat(2, true)
	h.pass(testTTL)
	if h.IsCurrent("tokens") {
		t.Error("a host that has not read for its TTL is current")
	}
}

// TestVersionWakes: a notice wakes hosts, and a host whose session for notices is ended learns of a
// change all the same.
func TestVersionWakes(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]bool{"woken": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Schema(t)
			h := joinHost(t, dsn)
			var reads atomic.Int64
			read := make(chan struct{}, 1)
			h.Watch("tokens", func(context.Context) error {
				reads.Add(1)
				read <- struct{}{}
				return nil
			})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- h.Run(ctx, h) }()
			<-read
			for range 3 {
				if cut {
					change(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT current_schema()'")
				}
				raise(t, dsn, "tokens", !cut)
				<-read
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := reads.Load(); n != 4 {
				t.Errorf("it was read %d times", n)
			}
		})
	}
}
