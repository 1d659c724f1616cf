package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// subscribe sends an envelope that subscribes. Its message is taken as the partner has it: the
// answer comes when the subscription is over.
func (a *attempt) subscribe(ctx context.Context) error {
	if !a.p.May.Has(gateway.MayTell) {
		return gateway.Refuse("%s may not tell, so that no event would come: add %q to may in [gateways.uamp.partners.%s]", a.p.Name, gateway.MayTell, a.p.Name)
	}
	t, _, err := state.Load[thread](ctx, a.g.threads, a.thread)
	if _, done := t.answered(a.e.ID); done || err != nil {
		return err
	}
	key := subscriptionKey(a.caller, a.e.ID)
	sub, _, err := state.Load[subscription](ctx, a.g.state, key)
	if err != nil || sub.Taken {
		return err
	}
	first, err := a.begin(ctx)
	if err != nil {
		return err
	}
	sub = subscription{
		ID: a.e.ID, From: a.e.From, To: a.e.To[0], Topic: subscribeBodyOf(a.d.Wrapper.Payload.RoutingInfo).Topic,
		Until: a.open.Since.Add(a.ttl()), Sent: gateway.RefOf(a.d),
	}
	if err = a.g.reserveSubscription(ctx, a.caller, sub); err == nil {
		err = a.offer(ctx, first, sub)
	}
	if err == nil {
		return nil
	}
	if a.outcomeOf(err).State == gateway.Refused && !a.isStale(first, err) {
		err = errors.Join(err, a.g.removeSubscription(context.WithoutCancel(ctx), a.caller, sub.ID))
	}
	return a.settle(ctx, first, err)
}

// offer sends the envelope of a subscription, and keeps that the partner has taken it.
func (a *attempt) offer(ctx context.Context, first bool, sub subscription) error {
	timed, cancel := context.WithTimeout(ctx, a.p.Timeout)
	defer cancel()
	got, err := a.send(timed, first)
	if err != nil {
		return err
	}
	if got.answer != nil {
		return a.g.endSubscription(ctx, a.caller, sub, a.g.answerIn(*got.answer))
	}
	key := subscriptionKey(a.caller, sub.ID)
	err = a.g.changeSubscription(ctx, key, func(s *subscription) { s.Taken, s.Stream = true, got.stream })
	if errors.Is(err, errNoSubscription) {
		return nil // an envelope has answered it meanwhile
	}
	if err == nil {
		a.g.followers.Restart(key, a.g.followSubscription)
	}
	return err
}

// subscribeContent puts into an envelope what an action subscribes to.
func subscribeContent(e *envelope.Envelope, p mail.Payload) error {
	body := subscribeBodyOf(p.RoutingInfo)
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	e.Body = envelope.NewBody("application/json", text)
	if mail.Printable(body.Topic) && !mail.Reserved(body.Topic) {
		e.Ext[extSubject] = quote(body.Topic)
	}
	return nil
}

// ttl is the time for which the envelope subscribes, 0 for another one.
func (a *attempt) ttl() time.Duration {
	if a.e.Intent != envelope.Subscribe {
		return 0
	}
	return subscribeBodyOf(a.d.Wrapper.Payload.RoutingInfo).ttl()
}

// unsubscribes reports whether the message ends subscriptions.
func (a *attempt) unsubscribes() bool {
	return gateway.VerbOf(a.d.Wrapper.Payload.RoutingInfo) == verb.UAMPUnsubscribe
}

// unsubscribe ends the subscriptions of the message's task to a topic, or all to the agent.
// There may be none any more.
func (a *attempt) unsubscribe(ctx context.Context) error {
	topic := subscribeBodyOf(a.d.Wrapper.Payload.RoutingInfo).Topic
	to := a.e.To[0]
	a.e.ID = ""
	return a.g.withdrawSubscriptions(ctx, a.p, func(sub subscription) bool {
		return sub.isOf(a.d) && sub.To == to && (topic == "" || sub.Topic == topic)
	})
}

// isOf reports whether a subscription is of the task of an outbox message.
func (s subscription) isOf(d swarm.Delivery) bool {
	return s.Sent.Instance == d.Task.InstanceKey && s.Sent.Task == d.Wrapper.Payload.TaskID
}

// withdrawSubscriptions cancels subscriptions at a partner, and answers their requests.
func (g *Gateway) withdrawSubscriptions(ctx context.Context, p gateway.Partner, which func(subscription) bool) error {
	var list []subscription
	err := g.eachSubscription(ctx, p.Caller(), func(sub subscription) {
		if which(sub) {
			list = append(list, sub)
		}
	})
	for _, sub := range list {
		if err == nil {
			err = g.withdrawSubscription(ctx, p, sub)
		}
		if err == nil {
			err = g.endSubscription(ctx, p.Caller(), sub, sub.cancelled())
		}
	}
	return err
}

// cancelled is the answer of a subscription that our agent has cancelled.
func (s subscription) cancelled() answer {
	return answer{kind: string(envelope.Cancel), from: s.To, code: "CANCELLED", body: "The subscription was cancelled."}
}

// withdrawSubscription sends a cancel for a subscription that the partner has taken (U-085). It
// may have ended there before.
func (g *Gateway) withdrawSubscription(ctx context.Context, p gateway.Partner, sub subscription) error {
	if !sub.Taken {
		return nil
	}
	if err := g.sendCancel(ctx, p, sub, "The subscription is over."); !endedBefore(err) {
		return err
	}
	return nil
}

// sendCancel sends a cancel for an envelope of ours.
func (g *Gateway) sendCancel(ctx context.Context, p gateway.Partner, sub subscription, why string) error {
	a, err := g.attemptOf(ctx, p, sub)
	if err != nil {
		return err
	}
	defer a.via.close()
	timed, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	a.e.ID = envelope.NewID()
	a.e.Body = envelope.NewBody("text/plain", []byte(why))
	return a.withdraw(timed, sub.ID)
}

// attemptOf is an attempt that goes on with a subscription.
func (g *Gateway) attemptOf(ctx context.Context, p gateway.Partner, sub subscription) (*attempt, error) {
	a := &attempt{g: g, p: p, d: *sub.Sent.Delivery(), caller: p.Caller(), e: envelope.Envelope{
		ID: sub.ID, Time: time.Now(), From: sub.From, To: []string{sub.To}, Intent: envelope.Subscribe, Stream: ownStream + string(sub.ID),
		Window: min(g.MaxWindow, readWindow),
	}}
	var err error
	a.via, err = g.bind(ctx, p, sub.To)
	if own, is := a.via.(*socketBinding); is {
		own.key.events = true // an event may wait for the partner's rate, and answers do not
	}
	return a, err
}
