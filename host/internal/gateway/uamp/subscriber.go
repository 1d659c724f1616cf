package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// kindSubscriber is the kind of the records of subscriptions at our agents whose time ends.
const kindSubscriber = "subscriber"

// subscriber is an agent of a realm that has subscribed to events of one of ours for a time.
type subscriber struct {
	// Principal is the caller's.
	Principal json.RawMessage `json:"principal"`
	Until     time.Time       `json:"until"`
}

func subscriberKey(c gateway.Caller, id envelope.ID) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindSubscriber, Name: string(id)}
}

// checkSubscribe refuses an envelope that subscribes to what cannot be read. ttl is 0 where it
// has none.
func (g *Gateway) checkSubscribe(ctx context.Context, e envelope.Envelope) (ttl time.Duration, err error) {
	if e.Intent != envelope.Subscribe {
		return 0, nil
	}
	release, err := g.large.Acquire(ctx, len(e.Body.Content))
	if err != nil {
		return 0, err
	}
	defer release()
	content, err := e.Body.Decode(int(g.MaxBody))
	if err != nil {
		return 0, err
	}
	body, err := readSubscribe(content)
	return body.ttl(), err
}

// reserveSubscriber makes the record of a subscription for a time before its envelope is
// delivered: one whose end cannot be kept is not accepted.
func (g *Gateway) reserveSubscriber(ctx context.Context, c gateway.Caller, id envelope.ID, ttl time.Duration) error {
	if ttl == 0 {
		return nil
	}
	key := subscriberKey(c, id)
	release, err := g.subscribing.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	count, own := 0, state.Record{}
	err = state.Each(ctx, g.state, subscriberKey(c, ""), func(r state.Record) error {
		if r.Key == key {
			own = r
		}
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if own.Version != 0 || count >= g.Subscriptions {
		if _, err = g.Runtime.Find(ctx, c, string(id)); !errors.Is(err, gateway.ErrUnknown) {
			return err // a repeat, also of a subscription that has ended
		}
	}
	if own.Version == 0 && count >= g.Subscriptions {
		return fmt.Errorf("you have %d subscriptions with a ttl, which is subscriptions of [gateways.uamp]: %w", count, gateway.ErrBusy)
	}
	return g.putSubscriber(ctx, c, key, own.Version, time.Now().Add(ttl))
}

func (g *Gateway) putSubscriber(ctx context.Context, c gateway.Caller, key state.Key, version int64, until time.Time) error {
	principal, err := json.Marshal(c.Principal)
	if err == nil {
		_, err = state.Save(ctx, g.state, key, version, subscriber{principal, until}, time.Until(until)+subscriptionGrace)
	}
	return err
}

// keepSubscriber goes on with the record of a subscription that was accepted. A delivery of the
// same envelope that has failed meanwhile may have removed it.
func (g *Gateway) keepSubscriber(ctx context.Context, c gateway.Caller, id envelope.ID, x gateway.Exchange, ttl time.Duration) error {
	if ttl == 0 {
		return nil
	}
	key := subscriberKey(c, id)
	defer g.followers.Restart(key, g.followSubscriber) // also after a failure, and for one that has ended: it removes its record
	if x.Answered > 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // the envelope is accepted, also where its sender leaves
	release, err := g.subscribing.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	_, err = g.state.Get(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		err = g.putSubscriber(ctx, c, key, 0, x.Accepted.Add(ttl))
	}
	return err
}

// releaseSubscriber removes the record of an envelope that was not delivered.
func (g *Gateway) releaseSubscriber(ctx context.Context, c gateway.Caller, id envelope.ID) error {
	key := subscriberKey(c, id)
	ctx = context.WithoutCancel(ctx)
	release, err := g.subscribing.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	if _, err = g.Runtime.Find(ctx, c, string(id)); errors.Is(err, gateway.ErrUnknown) {
		err = g.state.Delete(ctx, key, 0)
	}
	return err
}

// followSubscriber withdraws a subscription at the end of its time, as its sender would by
// cancel (U-093).
func (g *Gateway) followSubscriber(ctx context.Context, key state.Key) {
	for pause := minFollowPause; ; pause = min(2*pause, maxFollowPause) {
		s, version, err := state.Load[subscriber](ctx, g.state, key)
		if err == nil && version == 0 {
			return
		}
		if err == nil {
			err = g.endSubscriber(ctx, key, s)
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			return
		}
		g.Log.Warn("uamp: a subscription whose time is over goes on", "realm", key.Realm, "id", key.Name, "pause", pause, "error", err)
		if !gateway.Pause(ctx, pause) {
			return
		}
	}
}

// endSubscriber waits for the end of a subscription or of its time, and removes its record.
func (g *Gateway) endSubscriber(ctx context.Context, key state.Key, s subscriber) error {
	c := gateway.Caller{Realm: key.Realm}
	if err := json.Unmarshal(s.Principal, &c.Principal); err != nil {
		return err
	}
	timed, cancel := context.WithDeadlineCause(ctx, s.Until, errOver)
	defer cancel()
	x, err := g.Runtime.Find(ctx, c, key.Name)
	if errors.Is(err, gateway.ErrUnknown) { // its delivery is under way, or was cut off
		return g.releaseSubscriber(ctx, c, envelope.ID(key.Name))
	}
	if err == nil {
		var a gateway.Answer
		if a, err = g.Runtime.Wait(timed, x); err == nil && a.Outcome == gateway.NeedsInput {
			<-timed.Done() // its sender is asked by an envelope of its own
			err = context.Cause(timed)
		}
	}
	if errors.Is(err, errOver) {
		err = g.Runtime.Cancel(ctx, c, key.Name, errOver.Error())
	}
	if err == nil || errors.Is(err, gateway.ErrUnknown) || errors.Is(err, gateway.ErrConflict) { // it has ended, or was erased
		return g.state.Delete(ctx, key, 0)
	}
	return err
}

// resume goes on with the subscriptions and withdrawals of an earlier run.
func (g *Gateway) resume(ctx context.Context) (err error) {
	kinds := map[string]func(context.Context, state.Key){
		kindSubscription: g.followSubscription, kindSubscriber: g.followSubscriber, kindWithdrawal: g.followWithdrawal,
	}
	for _, tenant := range g.Tenants {
		for kind, follow := range kinds {
			of := state.Key{Tenant: tenant, Gateway: Name, Kind: kind}
			err = errors.Join(err, state.Each(ctx, g.state, of, func(r state.Record) error {
				g.followers.Restart(r.Key, follow)
				return nil
			}))
		}
	}
	return err
}
