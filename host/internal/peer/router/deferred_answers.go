package router

import (
	"math/rand/v2"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// Answers for a peer that is down are deferred. One of their sequences at a time
// is tried, at intervals that grow from minDeferral to maxDeferral.
const (
	minDeferral = 10 * time.Second
	maxDeferral = 5 * time.Minute
	// wakeInterval is how often the router looks for due answers.
	wakeInterval = time.Second
)

// deferredAnswers are the answers for one peer that are not tried now. They are
// guarded by Router.mu. The zero value is empty.
type deferredAnswers struct {
	// messages are the deferred messages by sequence, order the sequences in the order of their turns.
	messages map[sequence]deferredMessages
	order    []sequence
	// giveUpAt is when the first of them is given up, or earlier.
	giveUpAt time.Time
	pause    time.Duration
	due      time.Time
	// randomBelow is the router's; nil takes the one of the standard library.
	randomBelow func(below time.Duration) time.Duration
	// peerUp is set when the peer answers again: all are due then. lastPeerUp is
	// when they last were, so that an answer which the peer never takes is not
	// tried all the time.
	peerUp     bool
	lastPeerUp time.Time
}

// deferredMessages are the deferred messages of one sequence.
type deferredMessages struct {
	ids []string
	// giveUpAt is when the first of them is given up.
	giveUpAt time.Time
}

// add defers a message, for at least wait.
func (q *deferredAnswers) add(at sequence, p swarm.Delivery, wait time.Duration, now time.Time) {
	if q.messages == nil {
		q.messages = map[sequence]deferredMessages{}
	}
	q.giveUpAt = earlier(q.giveUpAt, p.GiveUpAt)
	if len(q.messages) == 0 && !q.due.After(now) {
		q.pause, q.peerUp = minDeferral, false
		q.due = now.Add(q.jitter(minDeferral))
	}
	if early := now.Add(wait); q.due.Before(early) {
		q.due = early
	}
	m := q.messages[at]
	if len(m.ids) == 0 {
		q.order = append(q.order, at)
	}
	m.ids, m.giveUpAt = append(m.ids, p.Wrapper.MessageID), earlier(m.giveUpAt, p.GiveUpAt)
	q.messages[at] = m
}

// earlier returns the earlier time; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (q *deferredAnswers) jitter(d time.Duration) time.Duration {
	if q.randomBelow == nil {
		return jitter(d, rand.N[time.Duration])
	}
	return jitter(d, q.randomBelow)
}

// markPeerUp makes all due, because the peer has accepted or refused a message.
func (q *deferredAnswers) markPeerUp(now time.Time) {
	if len(q.messages) == 0 {
		return
	}
	q.peerUp, q.due = true, now
	if soonest := q.lastPeerUp.Add(minDeferral); soonest.After(now) {
		q.due = soonest
	}
}

// takeDue removes and returns the sequences that are due, and those with a message whose time is up.
func (q *deferredAnswers) takeDue(now time.Time) (woken []sequence) {
	woken = q.takeOver(now)
	if len(q.messages) == 0 || now.Before(q.due) {
		return woken
	}
	n := 1
	if q.peerUp {
		n, q.peerUp, q.lastPeerUp, q.pause = len(q.order), false, now, minDeferral
	} else {
		q.pause = min(2*q.pause, maxDeferral)
	}
	q.due = now.Add(q.jitter(q.pause))
	due := q.order[:n]
	q.order = q.order[n:]
	for _, n := range due {
		delete(q.messages, n)
	}
	return append(woken, due...)
}

// takeOver removes and returns the sequences with a message whose time is up: its turn may come days later.
func (q *deferredAnswers) takeOver(now time.Time) (over []sequence) {
	if len(q.messages) == 0 || now.Before(q.giveUpAt) {
		return nil
	}
	var first time.Time
	q.order = slices.DeleteFunc(q.order, func(n sequence) bool {
		end := q.messages[n].giveUpAt
		if !now.Before(end) {
			over = append(over, n)
			delete(q.messages, n)
			return true
		}
		first = earlier(first, end)
		return false
	})
	q.giveUpAt = first
	return over
}

// deferredOf returns the messages of a sequence that must not be tried now.
func (r *Router) deferredOf(l *peerQueue, n sequence) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(l.deferred.messages[n].ids)
}

func (r *Router) deferAnswer(l *peerQueue, at sequence, p swarm.Delivery, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.deferred.add(at, p, wait, r.opt.Now())
}

func (r *Router) notePeerAnswered(l *peerQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.deferred.markPeerUp(r.opt.Now())
}

// wakeDue wakes the sequences that are due.
func (r *Router) wakeDue() {
	r.mu.Lock()
	var woken []sequence
	for _, l := range r.queues {
		woken = append(woken, l.deferred.takeDue(r.opt.Now())...)
	}
	r.mu.Unlock()
	for _, n := range woken {
		r.wake(n)
	}
}
