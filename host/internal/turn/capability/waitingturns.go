package capability

import (
	"sync/atomic"
	"time"
)

// HibernateAfter is how long a turn waits with its sandbox beyond the waits that keep theirs.
const HibernateAfter = time.Second

// WaitingTurns bounds the turns that keep their sandbox while they wait for an answer. A turn beyond
// the bound gives it up and is repeated from its record when the answer is there. It is safe for
// concurrent use.
type WaitingTurns struct {
	bound              int64
	after              time.Duration
	kept, hibernations atomic.Int64
}

// CountHibernations counts the sandboxes that were given up.
func (w *WaitingTurns) CountHibernations() int64 { return w.hibernations.Load() }

// Bound sets how many waiting turns keep their sandbox, and how long the others wait with it.
// It must be set before turns run.
func (w *WaitingTurns) Bound(turns int, after time.Duration) {
	w.bound, w.after = int64(turns), after
}

// wait is one wait of a turn.
type wait struct {
	turns *WaitingTurns
	kept  bool
	timer *time.Timer
	// long receives when the turn should give its sandbox up; nil never does.
	long <-chan time.Time
}

// beginWait begins a wait for running effects.
func (o *ops) beginWait() wait {
	o.j.endRepeat()
	w := o.waitingTurns
	if w == nil || o.action != nil {
		return wait{}
	}
	if w.kept.Add(1) <= w.bound {
		return wait{turns: w, kept: true}
	}
	w.kept.Add(-1)
	timer := time.NewTimer(w.after)
	return wait{turns: w, timer: timer, long: timer.C}
}

// rearm lets a turn that could not give its sandbox up try again later.
func (w wait) rearm() { w.timer.Reset(w.turns.after) }

// end gives the place of a turn that kept its sandbox to another.
func (w wait) end() {
	switch {
	case w.kept:
		w.turns.kept.Add(-1)
	case w.timer != nil:
		w.timer.Stop()
	}
}
