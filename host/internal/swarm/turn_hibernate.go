package swarm

import (
	"context"
	"errors"
)

// Hibernated is what an earlier part of the turn left running when it gave its sandbox up, nil for
// a turn that has not hibernated.
func (t *Turn) Hibernated() Hibernated { return t.hibernated }

// wakeTurn waits until a turn without a sandbox can go on, and repeats it up to there. A turn whose
// context has ended is ended without a repetition.
func (r *Runtime) wakeTurn(ctx context.Context, t *activeTask, setup *turnSetup, h Hibernated) (*Turn, Outcome) {
	setup.slot.SetWaiting(true)
	h.Await(ctx, setup.run.interrupted)
	prior, err := r.loadPriorAttempt(ctx, t, setup.run.row, setup.rec)
	if err == nil && prior == nil {
		err = errors.New("the record of a turn that waits is gone")
	}
	var next *Turn
	if err == nil && ctx.Err() == nil {
		next, err = r.prepareTurn(t, setup, prior, nil)
	}
	if err != nil || ctx.Err() != nil {
		ended := r.newUnrunTurn(t, setup, prior)
		return ended, h.End(ctx, err, ended.Spent())
	}
	next.hibernated = h
	t.mu.Lock()
	setup.run.timers = 0 // they are staged again
	t.mu.Unlock()
	return next, r.execute(ctx, next)
}
