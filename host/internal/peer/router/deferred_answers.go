package router

import (
	"math/rand/v2"
	"slices"
	"time"
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
	// messages are the ids of the deferred messages by sequence, order the sequences in the order of
	// their turns.
	messages map[sequence][]string
	order    []sequence
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

// add defers a message, for at least wait.
func (q *deferredAnswers) add(at sequence, id string, wait time.Duration, now time.Time) {
	if q.messages == nil {
		q.messages = map[sequence][]string{}
	}
	if len(q.messages) == 0 && !q.due.After(now) {
		q.pause, q.peerUp = minDeferral, false
		q.due = now.Add(q.jitter(minDeferral))
	}
	if early := now.Add(wait); q.due.Before(early) {
		q.due = early
	}
	if len(q.messages[at]) == 0 {
		q.order = append(q.order, at)
	}
	q.messages[at] = append(q.messages[at], id)
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

// takeDue removes and returns the sequences that are due.
func (q *deferredAnswers) takeDue(now time.Time) (woken []sequence) {
	if len(q.messages) == 0 || now.Before(q.due) {
		return nil
	}
	n := 1
	if q.peerUp {
		n, q.peerUp, q.lastPeerUp, q.pause = len(q.order), false, now, minDeferral
	} else {
		q.pause = min(2*q.pause, maxDeferral)
	}
	q.due = now.Add(q.jitter(q.pause))
	woken, q.order = q.order[:n:n], q.order[n:]
	for _, n := range woken {
		delete(q.messages, n)
	}
	return woken
}

// deferredOf returns the messages of a sequence that must not be tried now.
func (r *Router) deferredOf(l *peerQueue, n sequence) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(l.deferred.messages[n])
}

func (r *Router) deferAnswer(l *peerQueue, at sequence, id string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.deferred.add(at, id, wait, r.opt.Now())
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
