package uamp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/gateway/wire"
)

// kindSubscription is the kind of the records of our agents' subscriptions at partners.
const kindSubscription = "subscription"

// Limits of our agents' subscriptions.
const (
	maxSubscriptions        = 256 // at one partner
	maxSubscriptionsOfAgent = 64  // of one agent at one partner
	defaultTTL              = time.Hour
	// subscriptionGrace is how long a record stays after the time of its subscription: a host
	// that was down ends it then.
	subscriptionGrace = 30 * 24 * time.Hour
)

// subscription is what an agent of ours has subscribed to (U-093). Its request stays open for
// as long as the record is there.
type subscription struct {
	ID    envelope.ID `json:"id"`
	From  string      `json:"from"`
	To    string      `json:"to"`
	Topic string      `json:"topic"`
	Until time.Time   `json:"until"`
	// Taken means that the partner has the envelope. Stream is the address of the stream with
	// the events, empty for none, and Next the number of the first delta that is not told.
	Taken  bool              `json:"taken,omitempty"`
	Stream string            `json:"stream,omitempty"`
	Next   int               `json:"next,omitempty"`
	Sent   gateway.OutboxRef `json:"sent"`
}

// isLive reports whether the time of the subscription is not over.
func (s subscription) isLive() bool { return time.Now().Before(s.Until) }

// hasStream reports whether the stream with the events has a name: its envelope's, or the partner's.
func (s subscription) hasStream(name string) bool {
	return name != "" && (name == ownStream+string(s.ID) || name == streamNameIn(s.Stream))
}

// open is the envelope of the subscription, as the thread has it.
func (s subscription) open() openEnvelope {
	return openEnvelope{ID: s.ID, Intent: envelope.Subscribe, To: s.To, Sent: s.Sent}
}

func subscriptionKey(c gateway.Caller, id envelope.ID) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindSubscription, Name: string(id)}
}

// subscribeBody is the content of an envelope that subscribes (U-093).
type subscribeBody struct {
	Topic  string          `json:"topic"`
	Filter json.RawMessage `json:"filter,omitempty"`
	// TTL is in seconds; 0 is until it is cancelled.
	TTL int64 `json:"ttl,omitempty"`
}

// ttl is the time of the subscription.
func (b subscribeBody) ttl() time.Duration { return time.Duration(b.TTL) * time.Second }

// readSubscribe reads what an agent of a realm subscribes to. The document has no form for it:
// what is no JSON object is the topic. An object has one reading, as an envelope has.
func readSubscribe(content []byte) (b subscribeBody, err error) {
	if content = bytes.TrimSpace(content); !bytes.HasPrefix(content, []byte("{")) {
		return subscribeBody{Topic: string(content)}, nil
	}
	if _, err := wire.Canonical(content, wire.AsSent, defaultMaxDepth); err != nil {
		return b, envelope.Faultf(envelope.Malformed, "the body of subscribe %v", err)
	}
	var members map[string]json.RawMessage // encoding/json takes TTL for ttl in a struct
	var ttl *int64
	err = json.Unmarshal(content, &members)
	for name, to := range map[string]any{"topic": &b.Topic, "filter": &b.Filter, "ttl": &ttl} {
		if value, has := members[name]; has && err == nil {
			err = json.Unmarshal(value, to)
		}
	}
	if ttl != nil {
		b.TTL = *ttl
	}
	if err != nil || ttl != nil && (b.TTL < 1 || b.TTL > verb.MaxTTL) {
		return b, envelope.Faultf(envelope.Malformed, "the body of subscribe needs a topic that is a text and a ttl of 1 to %d seconds, or none", verb.MaxTTL)
	}
	return b, nil
}

// subscribeBodyOf is what an action of ours subscribes to.
func subscribeBodyOf(routing json.RawMessage) subscribeBody {
	var info struct {
		Gateway subscribeBody `json:"gateway"`
	}
	_ = json.Unmarshal(routing, &info) // the schema of the action was checked
	info.Gateway.TTL = min(cmp.Or(max(info.Gateway.TTL, 0), int64(defaultTTL/time.Second)), verb.MaxTTL)
	return info.Gateway
}

// eachSubscription shows the subscriptions at a partner. One that cannot be read keeps no other
// back.
func (g *Gateway) eachSubscription(ctx context.Context, c gateway.Caller, show func(subscription)) error {
	return state.Each(ctx, g.state, subscriptionKey(c, ""), func(r state.Record) error {
		var sub subscription
		if err := json.Unmarshal(r.Value, &sub); err != nil {
			g.Log.Error("uamp: a subscription cannot be read", "realm", c.Realm, "id", r.Key.Name, "error", err)
			return nil
		}
		show(sub)
		return nil
	})
}

// reserveSubscription makes the record of a subscription before its envelope leaves, so that
// events which come at once find it. One that an attempt before has made stays.
func (g *Gateway) reserveSubscription(ctx context.Context, c gateway.Caller, sub subscription) error {
	key := subscriptionKey(c, sub.ID)
	release, err := g.subscribing.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	all, own := 0, 0
	err = g.eachSubscription(ctx, c, func(other subscription) {
		switch {
		case other.ID == sub.ID || !other.isLive():
			return
		case other.From == sub.From:
			own++
		}
		all++
	})
	switch {
	case err != nil:
		return err
	case own >= maxSubscriptionsOfAgent:
		return gateway.Refuse("the agent has %d subscriptions at %s, which are as many as it may: end one by unsubscribe", own, c.Realm)
	case all >= maxSubscriptions:
		return gateway.Refuse("there are %d subscriptions at %s, which are as many as there may be: end one by unsubscribe", all, c.Realm)
	}
	_, err = state.Save(ctx, g.state, key, 0, sub, time.Until(sub.Until)+subscriptionGrace)
	if errors.Is(err, state.ErrVersion) {
		err = g.changeSubscription(ctx, key, func(s *subscription) {
			if !s.Taken {
				s.Until = sub.Until // the envelope is another one, which counts from now
			}
		})
	}
	if err == nil {
		g.followers.Restart(key, g.followSubscription) // it checks whether the task still waits
	}
	return err
}

// errNoSubscription keeps a record that was removed from being made again.
var errNoSubscription = errors.New("the subscription is over")

// changeSubscription changes the record of a subscription that is not over.
func (g *Gateway) changeSubscription(ctx context.Context, key state.Key, change func(*subscription)) error {
	sub, version, err := state.Load[subscription](ctx, g.state, key)
	if err != nil {
		return err
	}
	return state.Change(ctx, g.state, key, time.Until(sub.Until)+subscriptionGrace, func(s *subscription) error {
		if version == 0 || s.ID == "" {
			return errNoSubscription
		}
		change(s)
		return nil
	})
}

// endSubscription answers the request of a subscription, and removes its record. Where an
// attempt before has done the one, it does the other.
func (g *Gateway) endSubscription(ctx context.Context, c gateway.Caller, sub subscription, got answer) error {
	ctx = context.WithoutCancel(ctx)
	if err := g.deliverAnswer(ctx, c, sub.open(), sub.Sent.Delivery(), got); err != nil {
		return err
	}
	return g.closeSubscription(ctx, c, sub.ID, got.failed(), got.sum)
}

// checkWaits reports whether the task of a subscription waits for events. One that does not is
// withdrawn at once.
func (g *Gateway) checkWaits(ctx context.Context, c gateway.Caller, of openEnvelope) (bool, error) {
	waits, err := g.Runtime.Waits(ctx, *of.Sent.Delivery())
	if !waits && err == nil {
		g.followers.Restart(subscriptionKey(c, of.ID), g.followSubscription)
	}
	return waits, err
}

// closeSubscription makes a subscription one that has its answer.
func (g *Gateway) closeSubscription(ctx context.Context, c gateway.Caller, id envelope.ID, failed bool, sum string) error {
	if err := g.removeSubscription(ctx, c, id); err != nil {
		return err
	}
	return g.changeOpen(ctx, threadKey(c, threadOf(id)), id, func(t *thread) { t.answer(id, failed, sum) })
}

// removeSubscription removes the record of a subscription that has its answer.
func (g *Gateway) removeSubscription(ctx context.Context, c gateway.Caller, id envelope.ID) error {
	key := subscriptionKey(c, id)
	err := g.state.Delete(ctx, key, 0)
	if err == nil {
		g.followers.Stop(key)
	}
	return err
}
