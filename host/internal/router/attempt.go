package router

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
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
}

// attempts tries a letter until the peer has taken or refused it, or its time is
// up. That runs from when it was sent, or from when this host could first try.
func (r *Router) attempts(ctx context.Context, l *line, name string, p swarm.Parcel) outcome {
	since := p.Since
	if since.Before(r.begun) {
		since = r.begun
	}
	way, turned, tries, last := p.Back, false, 0, "its circuit breaker is open"
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		peer, err := r.opt.Peers.Peer(name)
		if err != nil {
			return outcome{reason: err.Error()}
		}
		a := answer{wait: l.breaker.admit(r.opt.Now())}
		if a.wait == 0 {
			if a = r.flight(ctx, peer, p, way); ctx.Err() != nil {
				return outcome{}
			}
			l.breaker.report(a.kind != unanswered, r.opt.Now())
			tries++
			last = cmp.Or(a.reason, last)
			switch {
			case a.kind == taken, p.Notice && a.kind == unknownTask:
				return outcome{taken: true, runner: a.runner}
			case a.otherWay(way) && !turned && !p.Notice:
				way, turned = !way, true
				continue
			case a.kind != unanswered && a.kind != later:
				return outcome{reason: fmt.Sprintf("swarm '%s' refuses it: %s", name, a.reason)}
			}
		}
		left := since.Add(peer.GiveUp).Sub(r.opt.Now())
		if left <= 0 {
			return outcome{reason: fmt.Sprintf("swarm '%s' did not take it within %s ([peers.%s] give_up), %d tries: %s", name, peer.GiveUp, name, tries, last)}
		}
		sleep(ctx, min(left, max(a.wait, jitter(pause))))
		if ctx.Err() != nil {
			return outcome{}
		}
	}
}

// jitter keeps hosts that were cut off together from coming back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
