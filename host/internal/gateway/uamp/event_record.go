package uamp

import (
	"context"
	"errors"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// kindEvent is the kind of the records of events that went to subscriptions without naming one. A
// repeat goes to the same subscriptions alone, and to no agent where all have ended.
const kindEvent = "event"

// maxEvents is how many events of a realm are kept at least. They are kept for as long as the time
// of a repeat counts.
const maxEvents = 1024

// newEvents returns the store of events, in which the oldest make room.
func newEvents(store state.Store) state.Evicting {
	return state.Evicting{Store: store, Kind: kindEvent, Most: maxEvents, InUse: func([]byte) bool { return false }}
}

func eventKey(c gateway.Caller, id envelope.ID) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindEvent, Name: string(id)}
}

// keepEvent records that an event goes to subscriptions, before the first of them gets it.
func (g *Gateway) keepEvent(ctx context.Context, c gateway.Caller, id envelope.ID) error {
	_, err := state.Save(ctx, g.events, eventKey(c, id), 0, struct{}{}, 2*g.ClockSkew)
	if errors.Is(err, state.ErrVersion) {
		return nil // an earlier attempt has recorded it
	}
	return err
}

// checkEvent returns [errSubscriptionEnded] for an event of subscriptions that have all ended.
func (g *Gateway) checkEvent(ctx context.Context, c gateway.Caller, id envelope.ID) error {
	_, err := g.events.Get(ctx, eventKey(c, id))
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil
	case err == nil:
		return errSubscriptionEnded
	}
	return err
}
