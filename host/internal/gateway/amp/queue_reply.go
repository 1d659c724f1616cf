package amp

import (
	"context"
	"errors"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/message"
)

// answerTaken ends the time of a request that was taken, and answers a repeat by its sender.
func (q *queue) answerTaken(ctx context.Context, c gateway.Caller, in message.Received, got reply, again bool) bool {
	n, err := readNote(got.exchange)
	if err != nil {
		return false
	}
	if got.accepted {
		return q.reply(ctx, c, in, q.g.acceptedTo(c, got.exchange, n))
	}
	if !got.exchange.Duplicate {
		if n.Timeout > 0 {
			q.running.Go(func() { _, _ = q.g.await(ctx, c, got.exchange, n, socketWait) })
		}
		return true
	}
	a, ok, err := q.g.Runtime.Look(ctx, got.exchange)
	if again || err != nil || !ok || a.Outcome == gateway.NeedsInput {
		return err == nil
	}
	m, _ := q.g.answerTo(c, got.exchange, n, a)
	return q.reply(ctx, c, in, m)
}

// reply publishes a message to the sender of another. It is dropped where the sender has no queue,
// has an id that makes no routing key, or has a full queue: a reply that waited would hold one of
// the places of all senders.
func (q *queue) reply(ctx context.Context, c gateway.Caller, in message.Received, m message.Message) bool {
	m.Destination.Agent = in.Source.Agent
	text, err := q.g.write(c, in.Token, m)
	if err != nil {
		q.g.Log.Error("amp: an answer cannot be written", "error", err)
		return true
	}
	err = q.publish(ctx, in.Token, m, text)
	if _, refused := errors.AsType[*gateway.Refusal](err); refused || errors.Is(err, broker.ErrNotStored) {
		q.g.Log.Warn("amp: an answer cannot be sent", "message", in.ID, "reason", err)
		return true
	}
	return err == nil || errors.Is(err, broker.ErrNoQueue)
}
