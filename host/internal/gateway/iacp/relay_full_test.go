package iacp_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
)

// fullStore is a store that has no place for an error_response.
type fullStore struct {
	state.Store
	full error
}

// Put implements [state.Store].
func (f *fullStore) Put(ctx context.Context, r state.Record) (int64, error) {
	if r.Key.Kind == "mailbox" && bytes.Contains(r.Value, []byte("error_response")) {
		return 0, f.full
	}
	return f.Store.Put(ctx, r)
}

// TestRelaySilentFull (I-027): a message that a member does not acknowledge is given up also where
// the mailbox of its sender has no place for the notice: what is behind it comes next.
func TestRelaySilentFull(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]error{"the store": state.ErrFull, "the mailbox": gateway.ErrBusy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, relaying, func(o *iacp.Options) {
				o.Ack, o.Runtime = 200*time.Millisecond, stored{o.Runtime, &fullStore{o.Runtime.State(), full}}
			})
			from, to := s.spoke(t, token, "depot-1"), s.spoke(t, token, "depot-2")
			lost, next := iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": 1}), iacptest.New("context_share", "depot-1", "depot-2", map[string]any{"n": 2})
			exchange(t, from, lost, "ack")
			exchange(t, from, next, "ack")
			for range 3 {
				read(t, to, "context_share")
			}
			if got, err := to.Read(); err == nil {
				t.Errorf("got %s, want the end", got.Raw)
			}
			if got := read(t, s.spoke(t, token, "depot-2"), "context_share"); got.ID != next.ID {
				t.Errorf("got %s, want %s", got.Raw, next.ID)
			}
		})
	}
}
