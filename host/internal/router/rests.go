package router

import (
	"math/rand/v2"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// Answers for a peer that does not answer rest. One of their tasks tries at a time,
// at pauses that grow from firstSlow to lastSlow.
const (
	firstSlow = 10 * time.Second
	lastSlow  = 5 * time.Minute
	// lookEvery is how often the router looks whose time has come.
	lookEvery = time.Second
)

// rests are the answers for one peer that nobody tries to deliver right now. They
// are guarded by Router.mu. The zero value is none.
type rests struct {
	// of are the letters by outbox, order the outboxes in the order of their turns.
	of    map[swarm.Outbox][]int64
	order []swarm.Outbox
	pause time.Duration
	due   time.Time
	// back says that the peer answers again: all are due. lastBack is when
	// they last were, so that one which it never answers does not come all the time.
	back     bool
	lastBack time.Time
}

// put lays a letter to rest, for at least wait.
func (q *rests) put(box swarm.Outbox, n int64, wait time.Duration, now time.Time) {
	if q.of == nil {
		q.of = map[swarm.Outbox][]int64{}
	}
	if len(q.of) == 0 && !q.due.After(now) {
		q.pause, q.back = firstSlow, false
		q.due = now.Add(jitter(firstSlow, rand.N[time.Duration]))
	}
	if early := now.Add(wait); q.due.Before(early) {
		q.due = early
	}
	if len(q.of[box]) == 0 {
		q.order = append(q.order, box)
	}
	q.of[box] = append(q.of[box], n)
}

// answered says that the peer has taken or refused a letter.
func (q *rests) answered(now time.Time) {
	if len(q.of) == 0 {
		return
	}
	q.back, q.due = true, now
	if soonest := q.lastBack.Add(firstSlow); soonest.After(now) {
		q.due = soonest
	}
}

// wake ends the rest of those whose time has come.
func (q *rests) wake(now time.Time) (woken []swarm.Outbox) {
	if len(q.of) == 0 || now.Before(q.due) {
		return nil
	}
	n := 1
	if q.back {
		n, q.back, q.lastBack, q.pause = len(q.order), false, now, firstSlow
	} else {
		q.pause = min(2*q.pause, lastSlow)
	}
	q.due = now.Add(jitter(q.pause, rand.N[time.Duration]))
	woken, q.order = q.order[:n:n], q.order[n:]
	for _, box := range woken {
		delete(q.of, box)
	}
	return woken
}

// resting are the letters of an outbox that must not be tried now.
func (r *Router) resting(l *line, box swarm.Outbox) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(l.rests.of[box])
}

func (r *Router) rest(l *line, box swarm.Outbox, n int64, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.rests.put(box, n, wait, r.opt.Now())
}

func (r *Router) answered(l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.rests.answered(r.opt.Now())
}

// look ends the rest of letters whose time has come.
func (r *Router) look() {
	r.mu.Lock()
	var woken []swarm.Outbox
	for _, l := range r.lines {
		woken = append(woken, l.rests.wake(r.opt.Now())...)
	}
	r.mu.Unlock()
	for _, box := range woken {
		r.Wake(box)
	}
}
