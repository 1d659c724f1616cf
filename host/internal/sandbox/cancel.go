package sandbox

import (
	"context"
	"errors"
	"time"
)

// errCalledOff is the cause that ops find when their turn is called off.
var errCalledOff = errors.New("the turn is called off")

// calls is what a turn's ops run under: a context that ends with the turn, or
// when it is called off.
type calls struct {
	ctx    context.Context // nil before the first op
	cancel context.CancelCauseFunc
	watch  chan struct{} // closed when nobody waits for the call-off any more
}

// opContext returns the context for an op that begins now.
func (r *run) opContext() context.Context {
	if r.starting {
		return r.ctx
	}
	c := &r.under
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancelCause(r.ctx)
		if r.turn.Cancelled != nil {
			c.watch = make(chan struct{})
			go c.follow(c.ctx, r.turn.Cancelled)
		}
	}
	if r.calledOff() {
		c.cancel(errCalledOff) // the watcher may be late
	}
	return c.ctx
}

// follow passes the call-off on to ops that wait.
func (c *calls) follow(ctx context.Context, cancelled <-chan struct{}) {
	defer close(c.watch)
	select {
	case <-cancelled:
		c.cancel(errCalledOff)
	case <-ctx.Done():
	}
}

func (r *run) calledOff() bool {
	select {
	case <-r.turn.Cancelled:
		return true
	default:
		return false
	}
}

// endOps cancels what is in flight and waits until nothing of it is left. All
// are cancelled before the first is waited for.
func (r *run) endOps() {
	c := &r.under
	if c.ctx == nil {
		return
	}
	r.token.release()
	c.cancel(nil)
	if c.watch != nil {
		<-c.watch
	}
	for number := range r.handles.open {
		h, _ := r.handles.take(number)
		h.answer.Close()
	}
}

// checkGrace kills a guest that goes on after its turn was called off. The grace
// begins when the guest computes: one that waits for a token cannot end.
func (r *run) checkGrace(now time.Time) {
	switch {
	case r.starting || !r.calledOff():
	case r.offSince.IsZero():
		r.offSince = now
	case now.Sub(r.offSince) > r.limits.Grace:
		r.kill(GraceExit(r.limits))
	}
}
