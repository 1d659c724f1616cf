package iacp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp"
	"skep/host/internal/hosttest"
)

// blindRuntime is a runtime whose answers cannot be looked for. It counts the calls.
type blindRuntime struct {
	gateway.Runtime
	looks, cancels atomic.Int64
}

// Look implements [gateway.Runtime].
func (rt *blindRuntime) Look(context.Context, gateway.Exchange) (gateway.Answer, bool, error) {
	rt.looks.Add(1)
	return gateway.Answer{}, false, errors.New("the disk is full")
}

// Cancel implements [gateway.Runtime].
func (rt *blindRuntime) Cancel(ctx context.Context, c gateway.Caller, id, reason string) error {
	rt.cancels.Add(1)
	return rt.Runtime.Cancel(ctx, c, id, reason)
}

// TestLateAnswerCut (I-057): a question whose time is over while its answer cannot be looked for is
// not withdrawn when its connection ends: its answer may be there, and is kept for the next one.
func TestLateAnswerCut(t *testing.T) {
	t.Parallel()
	var rt *blindRuntime
	t.Run("site", func(t *testing.T) {
		s := newSite(t, func(o *iacp.Options) {
			rt = &blindRuntime{Runtime: o.Runtime}
			o.Runtime, o.FirstPause = rt, time.Millisecond
		})
		newSlowAgent(s)
		c := s.spoke(t, token, "depot-1")
		exchange(t, c, slowTask(0.01), "ack")
		hosttest.Eventually(t, "the answer is looked for", func() bool { return rt.looks.Load() > 0 })
		_ = c.Close()
		hosttest.Eventually(t, "the answer is kept", func() bool { return s.countUnsent(t) == 1 })
	})
	if n := rt.cancels.Load(); n != 0 {
		t.Errorf("it was withdrawn %d times", n)
	}
}
