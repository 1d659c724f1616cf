package swarm

import (
	"context"
	"errors"
)

// Hibernation is what an earlier part of the turn left running when it gave its sandbox up, nil
// for a turn that has not hibernated.
func (t *Turn) Hibernation() Hibernation { return t.hibernation }

// awaitTurn waits until a turn without a sandbox can go on, and returns what remains of it meanwhile.
// Not more than this is on the stack of its goroutine, which is small then.
func (r *Runtime) awaitTurn(ctx context.Context, t *activeTask, setup *turnSetup, turn *Turn, h Hibernation) *Turn {
	asleep := r.newSleepingTurn(t, setup, turn)
	setup.slot.SetWaiting(true)
	h.Await(ctx, setup.run.interrupted)
	return asleep
}

// wakeTurn repeats a turn without a sandbox that can go on, up to where it waited. A turn whose
// context has ended is ended without a repetition. The outcome has what all parts have used.
func (r *Runtime) wakeTurn(ctx context.Context, t *activeTask, setup *turnSetup, asleep *Turn, part Outcome) (*Turn, Outcome) {
	next, out := r.repeatTurn(ctx, t, setup, asleep, part)
	if out.Failure != nil && out.Record == nil { // it was not repeated
		next, out.Calls, out.Memory = asleep, part.Calls, part.Memory
	}
	out.Usage.Fuel += part.Usage.Fuel
	out.Usage.CPU += part.Usage.CPU
	out.Usage.HostCalls = max(out.Usage.HostCalls, part.Usage.HostCalls)
	return next, out
}

// repeatTurn runs a turn again, or ends it.
func (r *Runtime) repeatTurn(ctx context.Context, t *activeTask, setup *turnSetup, asleep *Turn, part Outcome) (*Turn, Outcome) {
	h := part.Hibernation
	prior, err := r.loadPriorAttempt(ctx, t, setup.run.row, setup.rec)
	if err == nil && prior == nil {
		err = errors.New("the record of a turn that waits is gone")
	}
	var next *Turn
	if err == nil && ctx.Err() == nil {
		next, err = r.prepareTurn(t, setup, prior, nil)
	}
	if err != nil || ctx.Err() != nil {
		asleep.prior = prior
		out := r.guardTurn(asleep, func() Outcome { return h.End(ctx, err, asleep.Spent()) })
		out.Calls, out.Memory = part.Calls, part.Memory
		return asleep, out
	}
	next.hibernation, next.spans = h, asleep.spans
	next.logs.copyLines(&asleep.logs)
	return next, r.execute(ctx, next)
}

// newSleepingTurn is a turn with what remains of another if it ends while it waits: when it began,
// and what its agent has logged and reported. It holds neither its input nor what it has staged.
func (r *Runtime) newSleepingTurn(t *activeTask, setup *turnSetup, turn *Turn) *Turn {
	turn.dropBlobs()
	asleep := r.newUnrunTurn(t, setup, nil)
	asleep.start, asleep.metricReports, asleep.spans = turn.start, turn.metricReports, turn.spans
	asleep.journaled.Store(turn.journaled.Load())
	asleep.logs.copyLines(&turn.logs)
	return asleep
}

// isRepeatingItself reports whether a call is repeated that the turn has made before it hibernated.
// Its log lines, spans and timers are still there.
func (t *Turn) isRepeatingItself() bool { return t.hibernation != nil && t.replay != nil }
