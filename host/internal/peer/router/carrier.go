package router

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/swarm"
)

// Carrier takes messages to a swarm that is not reached over MAIL's routes. It is safe
// for concurrent use.
type Carrier interface {
	// Carry makes one attempt. It is called until it answers Taken or Refused, with the
	// same message ID, for one message of a task and a recipient at a time. An interrupt
	// and an answer may come at the same time.
	Carry(ctx context.Context, d swarm.Delivery) Carried
}

// Carried is what became of an attempt.
type Carried struct {
	State  CarriedState
	Reason string
	// Wait is set with Later by a swarm that is up and wants the message after that time.
	Wait time.Duration
}

// CarriedState is the state of a message after an attempt.
type CarriedState int

// The states after an attempt. Any other is Unanswered.
const (
	// Unanswered means that the swarm may have the message.
	Unanswered CarriedState = iota
	// Taken means that the swarm has the message.
	Taken
	// Refused means that the swarm will not take it.
	Refused
	// Later means that nothing was sent, and another attempt may succeed.
	Later
)

// carry makes one attempt with the peer's carrier.
func (r *Router) carry(ctx context.Context, box swarm.OutboxKey, peer Peer, d swarm.Delivery) reply {
	if peer.FailInDoubt {
		switch earlier, err := r.beginAttempt(ctx, box, peer, d.Wrapper.MessageID); {
		case err != nil:
			return reply{verdict: retryLater, unsent: true, reason: "the attempt cannot be recorded: " + err.Error()}
		case earlier:
			return reply{inDoubt: true, unsent: true, reason: "the host ended during an earlier attempt"}
		}
	}
	within := peer.AttemptTime
	if within <= 0 {
		within = maxRequestTime
	}
	attempt, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c := peer.Carrier.Carry(attempt, d)
	c.Reason = truncate(c.Reason)
	switch {
	case c.State == Taken:
		return reply{verdict: accepted}
	case c.State == Refused:
		return reply{verdict: refused, reason: c.Reason}
	case c.State == Later:
		r.endAttempt(ctx, box, peer, d.Wrapper.MessageID)
		return c.later()
	case c.Reason == "":
		c.Reason = fmt.Sprintf("it gave no whole answer within %s", within)
	}
	return reply{verdict: unanswered, inDoubt: peer.FailInDoubt, reason: c.Reason}
}

// later is the reply for a message that was not sent.
func (c Carried) later() reply {
	if c.Wait > 0 {
		return reply{verdict: retryLater, reason: c.Reason, wait: min(c.Wait, maxWait)}
	}
	return reply{reason: c.Reason}
}
