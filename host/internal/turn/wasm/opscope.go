package wasm

import (
	"context"
	"skep/host/internal/turn"
	"time"
)

// opScope is the context of a turn's ops, which ends with the turn or when the turn
// is cancelled.
type opScope struct {
	ctx         context.Context // nil before the first op
	cancel      context.CancelCauseFunc
	watcherDone chan struct{} // closed when watchCancel has returned
}

// opContext returns the context for an op that begins now.
func (r *run) opContext() context.Context {
	if r.starting {
		return r.ctx
	}
	c := &r.opScope
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancelCause(r.ctx)
		if r.turn.Cancelled != nil {
			c.watcherDone = make(chan struct{})
			go c.watchCancel(c.ctx, r.turn.Cancelled)
		}
	}
	if r.cancelled() {
		c.cancel(turn.ErrCancelled) // watchCancel may be late
	}
	return c.ctx
}

// watchCancel cancels waiting ops when the turn is cancelled.
func (c *opScope) watchCancel(ctx context.Context, cancelled <-chan struct{}) {
	defer close(c.watcherDone)
	select {
	case <-cancelled:
		c.cancel(turn.ErrCancelled)
	case <-ctx.Done():
	}
}

func (r *run) cancelled() bool {
	select {
	case <-r.turn.Cancelled:
		return true
	default:
		return false
	}
}

// endOps cancels all running ops, then waits until every one has stopped.
func (r *run) endOps() {
	c := &r.opScope
	if c.ctx == nil {
		return
	}
	r.token.release()
	c.cancel(nil)
	if c.watcherDone != nil {
		<-c.watcherDone
	}
	for number := range r.handles.open {
		h, _ := r.handles.remove(number)
		h.answer.Close()
	}
}

// checkGrace kills a guest that goes on after its turn was cancelled. The grace
// begins when the guest computes: a guest that waits for a token cannot return.
func (r *run) checkGrace(now time.Time) {
	switch {
	case r.starting || !r.cancelled():
	case r.cancelledSince.IsZero():
		r.cancelledSince = now
	case now.Sub(r.cancelledSince) > r.limits.Grace:
		r.kill(turn.GraceExit(r.limits))
	}
}
