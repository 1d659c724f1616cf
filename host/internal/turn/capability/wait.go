package capability

import (
	"context"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// Wait returns the index of the first reply that is ready. An op that ran at once is
// always ready, and leaves the clock alone.
func (o *ops) Wait(ctx context.Context, answers []turn.Answer, timeout time.Duration) (int, *abi.Error) {
	if fault := o.j.stoppedError(0); fault != nil {
		return 0, fault
	}
	replies := make([]*reply, len(answers))
	for i, a := range answers {
		replies[i] = a.(*reply) // Submit returns no other type
	}
	c := waitCall(replies, timeout)
	e, fault := o.j.replayEntry(c, swarm.EntryWait)
	switch {
	case fault != nil:
		return 0, fault
	case e != nil:
		replayWait(replies, e)
		return e.Index, e.Err
	}
	i, fault := o.awaitReply(ctx, replies, timeout)
	if fault := o.j.stoppedError(0); fault != nil {
		return 0, fault
	}
	w := c.entryWithDigest(swarm.EntryWait)
	w.Index, w.Err = i, fault
	o.j.add(w)
	return i, fault
}

// replayWait loads the replies that a recorded wait has checked.
func replayWait(replies []*reply, e *swarm.Entry) {
	for i, r := range replies {
		if e.Err != nil || i <= e.Index {
			r.loadRecorded()
		}
	}
}

// awaitReply waits for replies that are not recorded.
func (o *ops) awaitReply(ctx context.Context, replies []*reply, timeout time.Duration) (int, *abi.Error) {
	var late <-chan time.Time
	var until time.Time
	if timeout >= 0 {
		left := o.j.remaining(timeout)
		until = time.Now().Add(left)
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	w := o.beginWait()
	defer w.end()
	for {
		if fault := turn.CancelledError(ctx, abi.ImportWait); fault != nil {
			return 0, fault
		}
		for i, r := range replies {
			if r.ready() {
				return i, o.settleReply(r)
			}
		}
		if timeout < 0 && !slices.ContainsFunc(replies, func(r *reply) bool { return !r.pending() }) {
			return 0, o.suspend(ctx, call{op: replies[0].call.op})
		}
		select {
		case <-o.j.notifier():
		case <-ctx.Done():
		case <-w.long:
			if fault, ok := o.hibernate(replies[0].call.op, replies, until); ok {
				return 0, fault
			}
			w.rearm()
		case <-late:
			o.clock.Advance(o.now())
			return 0, &abi.Error{Code: abi.CodeDeadline, Op: abi.ImportWait, Reason: "timeout",
				Message: "nothing came within " + timeout.String()}
		}
	}
}

// settleReply settles a ready reply and moves the clock.
func (o *ops) settleReply(r *reply) *abi.Error {
	if r.known {
		return nil
	}
	o.clock.Advance(o.now())
	return r.settle()
}
