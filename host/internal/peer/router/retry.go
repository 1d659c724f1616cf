package router

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"skep/host/internal/swarm"
)

// The backoff between two attempts grows from minBackoff to maxBackoff, with
// jitter in its upper half.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// outcome is the result of delivering a message.
type outcome struct {
	accepted bool
	runner   string
	reason   string
	// deferred means that it is tried again later, after wait at least.
	deferred bool
	wait     time.Duration
	// gone means that it is in the outbox no more.
	gone bool
}

// deliverWithRetry tries a message until the peer has accepted or refused it, or
// its time is up, and at least once, whatever the breaker. The time counts from when
// the message was sent, or from when this host started. An answer is deferred then,
// until its own time is up.
func (r *Router) deliverWithRetry(ctx context.Context, outbox Outbox, l *peerQueue, box swarm.OutboxKey, p swarm.Delivery) outcome {
	name := box.Peer
	way, turned, tries, last := p.Back, false, 0, "its circuit breaker is open"
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		peer, err := r.opt.Peers.Peer(name)
		if err != nil {
			return outcome{reason: err.Error()}
		}
		peer.name = name
		up := l.breaker.whenUp()
		a := reply{wait: l.breaker.admit(r.opt.Now())}
		if a.wait == 0 || tries == 0 && r.isOver(p, peer) {
			a = r.attempt(ctx, l, box, peer, p, way)
			if ctx.Err() != nil {
				out, _ := a.outcome(name, p)
				return out // it counts if the peer has taken the message
			}
			tries++
			last = cmp.Or(a.reason, last)
			if a.otherRouteFits(p, way) && !turned {
				way, turned = !way, true
				continue
			}
			if out, ok := a.outcome(name, p); ok {
				return out
			}
		}
		left := r.timeLeft(p, peer)
		if a.reason != "" && peer.Carrier != nil && (left > 0 || p.GiveUpAt.After(r.opt.Now())) {
			outbox.ShowRetry(box, p.Wrapper.MessageID, a.reason)
		}
		switch {
		case left > 0:
		case p.GiveUpAt.After(r.opt.Now()):
			return outcome{deferred: true, wait: a.wait}
		default:
			return outcome{reason: fmt.Sprintf("swarm '%s' did not take it within %s, %d tries: %s", name, retrySpan(p, peer, name), tries, last)}
		}
		if a.verdict == retryLater {
			up = nil // it is up, and names its own time
		}
		sleepUntil(ctx, min(left, max(a.wait, jitter(pause, r.opt.RandomBelow))), up)
		if !r.isKept(ctx, outbox, box, p.Wrapper.MessageID) {
			return outcome{gone: true}
		}
	}
}

// isKept reports whether a message is still in its outbox: it may be withdrawn, or erased, between two attempts. It
// waits while the outbox cannot be read, and returns false when ctx ends.
func (r *Router) isKept(ctx context.Context, outbox Outbox, box swarm.OutboxKey, id string) bool {
	for pause := minBackoff; ctx.Err() == nil; pause = min(2*pause, maxBackoff) {
		_, kept, err := outbox.NextWanted(ctx, box, func(msg swarm.OutboxMessage) bool { return msg.ID == id })
		if err == nil {
			return kept
		}
		r.opt.Logger.Error("cannot read an outbox", "peer", box.Peer, "task_id", box.Task.Task, "err", err)
		sleep(ctx, pause)
	}
	return false
}

// outcome returns what a reply means for its message; ok is false when it is tried
// again.
func (a reply) outcome(name string, p swarm.Delivery) (out outcome, ok bool) {
	switch {
	case a.verdict == accepted, p.Ending && a.verdict == unknownTask:
		return outcome{accepted: true, runner: a.runner}, true
	case a.inDoubt:
		return outcome{reason: fmt.Sprintf("swarm '%s' may have it, and it is not sent twice (retry_in_doubt = false): %s", name, a.reason)}, true
	case a.local:
		return outcome{reason: fmt.Sprintf("this host cannot write to swarm '%s': %s", name, a.reason)}, true
	case a.verdict != unanswered && a.verdict != retryLater:
		return outcome{reason: fmt.Sprintf("swarm '%s' refuses it: %s", name, a.reason)}, true
	}
	return outcome{}, false
}

// timeLeft returns how long a message is still tried before it is given up or deferred.
func (r *Router) timeLeft(p swarm.Delivery, peer Peer) time.Duration {
	return r.countsFrom(p).Add(peer.GiveUp).Sub(r.opt.Now())
}

// isOver reports whether a message that has not been tried would be given up.
func (r *Router) isOver(p swarm.Delivery, peer Peer) bool {
	return r.timeLeft(p, peer) <= 0 && !p.GiveUpAt.After(r.opt.Now())
}

// retrySpan describes how long a message is tried, with the key that sets it.
func retrySpan(p swarm.Delivery, peer Peer, name string) string {
	if !p.GiveUpAt.IsZero() {
		return p.GiveUpAt.Sub(p.Since).String()
	}
	return fmt.Sprintf("%s ([%s] give_up)", peer.GiveUp, peer.table(name))
}

// table returns the table of the configuration that has the peer.
func (p Peer) table(name string) string {
	if p.Gateway != "" {
		return "gateways." + p.Gateway + ".partners." + name
	}
	return "peers." + name
}

// countsFrom returns when the time of a message begins.
func (r *Router) countsFrom(p swarm.Delivery) time.Time {
	if p.GiveUpAt.IsZero() && p.Since.Before(r.started) {
		return r.started
	}
	return p.Since
}

// requestTime returns the timeout of one request: the sender of a message learns
// soon after its time is up that it failed. For an answer the end is later.
func (r *Router) requestTime(p swarm.Delivery, peer Peer) time.Duration {
	end := r.countsFrom(p).Add(peer.GiveUp)
	if p.GiveUpAt.After(end) {
		end = p.GiveUpAt
	}
	return min(max(end.Sub(r.opt.Now()), minRequestTime), maxRequestTime)
}

// attempt sends a message once, when the limiter admits it, and updates the
// breaker.
func (r *Router) attempt(ctx context.Context, l *peerQueue, box swarm.OutboxKey, peer Peer, p swarm.Delivery, back bool) reply {
	var a reply
	if peer.Carrier != nil { // its workers bound it, not what peers share
		l.counters.attempts.Add(1)
		a = r.carry(ctx, box, peer, p)
	} else {
		leave := r.requests.acquire(ctx, box.Peer)
		if leave == nil {
			return reply{}
		}
		defer leave()
		l.counters.attempts.Add(1)
		a = r.send(ctx, peer, p, back, r.requestTime(p, peer))
	}
	switch {
	case a.unsent:
		l.breaker.release()
	case ctx.Err() == nil:
		l.breaker.record(a.verdict != unanswered, r.opt.Now(), peer.GiveUp)
		if a.verdict != unanswered && a.verdict != retryLater {
			r.notePeerAnswered(l)
		}
	}
	return a
}

// jitter returns a random duration in the upper half of d, so that hosts which
// lost a peer at the same time do not return at the same time.
func jitter(d time.Duration, pick func(below time.Duration) time.Duration) time.Duration {
	return d/2 + pick(d/2+1)
}
