package amp

import (
	"context"
	"errors"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/broker"
	"skep/host/internal/gateway/amp/message"
)

// take takes a message from the broker. While the host cannot, the message and those after it
// wait.
func (q *queue) take(ctx context.Context, m broker.Message, verdict func(broker.Verdict)) {
	in, c, err := q.read(ctx, m.Payload)
	for wait := firstTakePause; isHostFault(err); wait = min(2*wait, lastTakePause) { // the store did not say whether it is a repeat
		q.g.Log.Error("amp: a message at the broker could not be read", "message", in.ID, "error", err)
		if !gateway.Pause(ctx, wait) {
			verdict(broker.Kept)
			return
		}
		in, c, err = q.read(ctx, m.Payload)
	}
	if err != nil && in.Type == message.Event && q.isOwn(in.Source.Agent) {
		verdict(broker.Taken) // what our agents tell all comes to the host, too
		return
	}
	if err != nil {
		q.g.record(c, in, m.Payload, reply{}, err)
		q.g.Log.Warn("amp: a message at the broker is set aside", "key", m.Key, "message", in.ID, "reason", err)
		verdict(broker.SetAside)
		return
	}
	q.inOrder(sender{c.Principal.Tenant, c.Realm, in.Source.Agent}, func() {
		if isAnswer(in) && q.g.waiting.find(c, in.Headers.Correlation) == nil {
			q.takeEarly(ctx, c, in, m, verdict)
			return
		}
		q.takeOrKeep(ctx, c, in, m, verdict)
	})
}

// inOrder calls take behind the messages of the same sender, beside other senders: each waits for the
// host's disk. It waits for a place.
func (q *queue) inOrder(of sender, take func()) {
	q.taking <- struct{}{}
	done := make(chan struct{})
	q.mu.Lock()
	before := q.last[of]
	q.last[of] = done
	q.mu.Unlock()
	q.running.Go(func() {
		defer func() { <-q.taking }()
		if before != nil {
			<-before
		}
		take()
		q.mu.Lock()
		defer q.mu.Unlock()
		close(done)
		if q.last[of] == done {
			delete(q.last, of)
		}
	})
}

// takeOrKeep takes a message, or leaves it at the broker when the connection ends.
func (q *queue) takeOrKeep(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message, verdict func(broker.Verdict)) {
	for wait := firstTakePause; ; wait = min(2*wait, lastTakePause) {
		if q.takeOnce(ctx, c, in, m) {
			verdict(broker.Taken)
			return
		}
		if !gateway.Pause(ctx, wait) {
			verdict(broker.Kept)
			return
		}
	}
}

func isAnswer(in message.Received) bool {
	return in.Type == message.Response || in.Type == message.Error
}

// takeEarly waits until the question of an answer is under way, as after a start of the host,
// and does not hold up other messages meanwhile.
func (q *queue) takeEarly(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message, verdict func(broker.Verdict)) {
	q.mu.Lock()
	isPlace := q.early < maxEarly
	if isPlace {
		q.early++
	}
	q.mu.Unlock()
	if !isPlace {
		verdict(broker.SetAside)
		return
	}
	q.running.Go(func() {
		defer func() {
			q.mu.Lock()
			q.early--
			q.mu.Unlock()
		}()
		for last := time.Now().Add(earlyTime); time.Now().Before(last); {
			if q.g.waiting.find(c, in.Headers.Correlation) != nil && q.takeOnce(ctx, c, in, m) {
				verdict(broker.Taken)
				return
			}
			if !gateway.Pause(ctx, earlyPause) {
				verdict(broker.Kept)
				return
			}
		}
		verdict(broker.SetAside)
	})
}

// read reads a message, and finds the partner whose key has signed it.
func (q *queue) read(ctx context.Context, text []byte) (in message.Received, c gateway.Caller, err error) {
	if len(text) == 0 {
		return in, c, message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the message is empty, or larger than max_body of [gateways.amp]")
	}
	if in, err = q.g.socketReader.Read(text); err != nil {
		return in, c, err
	}
	for _, p := range q.g.Partners() {
		if isQueued(p) && len(p.HMACKey) > 0 && ownsAgent(p, p.Name, in.Source.Agent) && in.Verify(p.HMACKey) == nil {
			return in, p.Caller(), q.g.checkProof(ctx, p.Caller(), &in, q.g.Keep)
		}
	}
	return in, c, message.Faultf(message.AuthenticationFailed, message.ReasonSignature, "the signature proves no sender")
}

// takeOnce makes one attempt. What the gateway answers itself is published before the message is
// acknowledged; an answer of an agent leaves by the outbox.
func (q *queue) takeOnce(ctx context.Context, c gateway.Caller, in message.Received, m broker.Message) (taken bool) {
	got, err := q.g.accept(ctx, c, in, m.Payload, true)
	if isHostFault(err) {
		if ctx.Err() == nil && !errors.Is(err, gateway.ErrElsewhere) {
			q.g.Log.Error("amp: a message at the broker could not be taken", "message", in.ID, "error", err)
		}
		return false
	}
	q.g.record(c, in, m.Payload, got, err)
	switch {
	case err != nil && isAnswer(in):
		return true
	case err != nil:
		return q.reply(ctx, c, in, errorTo(in, q.g.faultOf(err)))
	case got.payload != nil:
		return q.reply(ctx, c, in, q.g.responseTo(c, in, *got.payload))
	case got.owed:
		return q.answerTaken(ctx, c, in, got, m.Again)
	}
	return true
}

// isHostFault reports whether an error is the host's and not the sender's: the same message may be
// taken later.
func isHostFault(err error) bool {
	if err == nil || errors.As(err, new(*message.Fault)) {
		return false
	}
	return !slices.ContainsFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) }) || errors.Is(err, gateway.ErrDraining) || errors.Is(err, gateway.ErrElsewhere)
}
