package capability

import (
	"context"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// Wait finds the first answer that has something to tell. What was done at once
// always has, and leaves the clock alone.
func (o *ops) Wait(ctx context.Context, answers []sandbox.Answer, timeout time.Duration) (int, *abi.Error) {
	if off := o.j.off(0); off != nil {
		return 0, off
	}
	replies := make([]*reply, len(answers))
	for i, a := range answers {
		replies[i] = a.(*reply) // Submit makes no others
	}
	c := waiting(replies, timeout)
	e, fault := o.j.again(c, swarm.EntryWait)
	switch {
	case fault != nil:
		return 0, fault
	case e != nil:
		heardAgain(replies, e)
		return e.Index, e.Err
	}
	i, fault := o.await(ctx, replies, timeout)
	if off := o.j.off(0); off != nil {
		return 0, off
	}
	w := c.asked(swarm.EntryWait)
	w.Index, w.Err = i, fault
	o.j.add(w)
	return i, fault
}

// heardAgain looks at the replies that a recorded wait has looked at.
func heardAgain(replies []*reply, e *swarm.Entry) {
	for i, r := range replies {
		if e.Err != nil || i <= e.Index {
			r.look()
		}
	}
}

// await waits for replies of which nothing is recorded.
func (o *ops) await(ctx context.Context, replies []*reply, timeout time.Duration) (int, *abi.Error) {
	var late <-chan time.Time
	if timeout >= 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		if fault := sandbox.CalledOff(ctx, abi.ImportWait); fault != nil {
			return 0, fault
		}
		for i, r := range replies {
			if r.ready() {
				return i, o.heard(r)
			}
		}
		if timeout < 0 && !slices.ContainsFunc(replies, func(r *reply) bool { return !r.pending() }) {
			return 0, o.suspend(ctx, call{op: replies[0].call.op})
		}
		select {
		case <-o.j.bell():
		case <-ctx.Done():
		case <-late:
			o.clock.Advance(o.now())
			return 0, &abi.Error{Code: abi.CodeDeadline, Op: abi.ImportWait, Reason: "timeout",
				Message: "nothing came within " + timeout.String()}
		}
	}
}

// heard is what a wait learns of a reply that has something to tell.
func (o *ops) heard(r *reply) *abi.Error {
	if r.known {
		return nil
	}
	o.clock.Advance(o.now())
	return r.settle()
}
