package iacp_test

import (
	"context"
	"sync/atomic"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/gateway/state"
)

// stuckDeletes is a runtime whose state removes no record until goOn is closed, or the caller's time is
// over. deleted counts the calls that have ended.
type stuckDeletes struct {
	gateway.Runtime
	goOn    chan struct{}
	deleted atomic.Int64
}

// State implements [gateway.Runtime].
func (rt *stuckDeletes) State() state.Store { return stuckState{rt.Runtime.State(), rt} }

type stuckState struct {
	state.Store
	rt *stuckDeletes
}

// Delete implements [state.Store].
func (s stuckState) Delete(ctx context.Context, k state.Key, version int64) error {
	defer s.rt.deleted.Add(1)
	select {
	case <-s.rt.goOn:
		return s.Store.Delete(ctx, k, version)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAnswerAgainReads (I-027, I-055): a connection is read while the store stands still that an acknowledged
// answer to a repeated question is removed from.
func TestAnswerAgainReads(t *testing.T) {
	t.Parallel()
	rt := &stuckDeletes{goOn: make(chan struct{})}
	s := newSite(t, func(o *iacp.Options) { rt.Runtime, o.Runtime = o.Runtime, rt })
	c := s.dial(t, "ack")
	m := task("x")
	for range 2 {
		exchange(t, c, m, "ack")
		read(t, c, "task_response")
	}
	exchange(t, c, iacptest.New("heartbeat", "depot-1", "", map[string]any{}), "heartbeat_ack")
	if n := rt.deleted.Load(); n != 0 {
		t.Errorf("the heartbeat waited for %d removals", n)
	}
	close(rt.goOn)
}
