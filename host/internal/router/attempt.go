package router

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"skep/host/internal/swarm"
)

// Pauses between two attempts at a letter grow from the first to the last; each is
// taken at random from its upper half.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// outcome is what became of a letter.
type outcome struct {
	taken  bool
	runner string
	reason string
	// rests says that it is tried again later, after wait at least.
	rests bool
	wait  time.Duration
}

// attempts tries a letter until the peer has taken or refused it, or its time is
// up. That runs from when it was sent, or from when this host could first try. An
// answer rests then, until its own time is up.
func (r *Router) attempts(ctx context.Context, l *line, name string, p swarm.Parcel) outcome {
	way, turned, tries, last := p.Back, false, 0, "its circuit breaker is open"
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		peer, err := r.opt.Peers.Peer(name)
		if err != nil {
			return outcome{reason: err.Error()}
		}
		a := answer{wait: l.breaker.admit(r.opt.Now())}
		if a.wait == 0 {
			if a = r.try(ctx, l, name, peer, p, way); ctx.Err() != nil {
				return outcome{}
			}
			tries++
			last = cmp.Or(a.reason, last)
			switch {
			case a.kind == taken, p.Ending && a.kind == unknownTask:
				return outcome{taken: true, runner: a.runner}
			case a.otherWay(p, way) && !turned:
				way, turned = !way, true
				continue
			case a.kind != unanswered && a.kind != later:
				return outcome{reason: fmt.Sprintf("swarm '%s' refuses it: %s", name, a.reason)}
			}
		}
		now := r.opt.Now()
		left := r.start(p).Add(peer.GiveUp).Sub(now)
		if left <= 0 && p.Until.After(now) {
			return outcome{rests: true, wait: a.wait}
		}
		if left <= 0 {
			return outcome{reason: fmt.Sprintf("swarm '%s' did not take it within %s, %d tries: %s", name, span(p, peer, name), tries, last)}
		}
		sleep(ctx, min(left, max(a.wait, jitter(pause, r.opt.Pick))))
		if ctx.Err() != nil {
			return outcome{}
		}
	}
}

// span is how long a letter is tried, and the key that says so.
func span(p swarm.Parcel, peer Peer, name string) string {
	if !p.Until.IsZero() {
		return p.Until.Sub(p.Since).String()
	}
	return fmt.Sprintf("%s ([peers.%s] give_up)", peer.GiveUp, name)
}

// start is from when on the time of a letter counts.
func (r *Router) start(p swarm.Parcel) time.Time {
	if p.Until.IsZero() && p.Since.Before(r.begun) {
		return r.begun
	}
	return p.Since
}

// within is how long one request may take: somebody who waits for what becomes of
// the letter is told soon after its time is up. Nobody waits for an answer.
func (r *Router) within(p swarm.Parcel, peer Peer) time.Duration {
	end := r.start(p).Add(peer.GiveUp)
	if p.Until.After(end) {
		end = p.Until
	}
	return min(max(end.Sub(r.opt.Now()), leastFlight), flightTime)
}

// try sends a letter once, as soon as that may be, and tells the breaker.
func (r *Router) try(ctx context.Context, l *line, name string, peer Peer, p swarm.Parcel, back bool) answer {
	leave := r.flights.enter(ctx, name)
	if leave == nil {
		return answer{}
	}
	defer leave()
	l.tally.attempts.Add(1)
	a := r.flight(ctx, peer, p, back, r.within(p, peer))
	if ctx.Err() == nil {
		l.breaker.report(a.kind != unanswered, r.opt.Now())
		if a.kind != unanswered && a.kind != later {
			r.answered(l)
		}
	}
	return a
}

// jitter is a time out of the upper half of d. It keeps hosts that were cut off
// together from coming back together.
func jitter(d time.Duration, pick func(below time.Duration) time.Duration) time.Duration {
	return d/2 + pick(d/2+1)
}
