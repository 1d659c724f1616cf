package uamp

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp/envelope"
)

// kindWithdrawal is the kind of the records of cancels that partners have not taken.
const kindWithdrawal = "withdrawal"

const (
	maxWithdrawals = 256       // at one partner
	withdrawalLife = time.Hour // in which a cancel is sent again
)

// withdrawal is an envelope of ours that was given up.
type withdrawal struct {
	ID   envelope.ID       `json:"id"`
	From string            `json:"from"`
	To   string            `json:"to"`
	Sent gateway.OutboxRef `json:"sent"`
}

func withdrawalKey(c gateway.Caller, id envelope.ID) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: kindWithdrawal, Name: string(id)}
}

// isWithdrawn reports whether a cancel with this error need not be sent again.
func isWithdrawn(err error) bool {
	return err == nil || endedBefore(err) || outcomeOf(err).State == gateway.Refused
}

// keepWithdrawal stores a cancel that the partner has not taken: it is sent again for an hour, also
// after a restart of the host.
func (g *Gateway) keepWithdrawal(ctx context.Context, c gateway.Caller, w withdrawal) error {
	key := withdrawalKey(c, w.ID)
	release, err := g.subscribing.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	count := 0
	err = state.Each(ctx, g.state, withdrawalKey(c, ""), func(state.Record) error { count++; return nil })
	if err == nil && count >= maxWithdrawals {
		err = fmt.Errorf("%d cancels wait for the partner: %w", count, gateway.ErrBusy)
	}
	if err == nil {
		_, err = state.Save(ctx, g.state, key, 0, w, withdrawalLife)
	}
	if err == nil {
		g.followers.Restart(key, g.followWithdrawal)
	}
	return err
}

// followWithdrawal sends a cancel until the partner has taken or refused it, or its record has
// expired.
func (g *Gateway) followWithdrawal(ctx context.Context, key state.Key) {
	for pause := minFollowPause; gateway.Pause(ctx, pause); pause = min(2*pause, maxFollowPause) {
		w, version, err := state.Load[withdrawal](ctx, g.state, key)
		if err == nil && version == 0 {
			return
		}
		if err == nil {
			err = g.repeatWithdrawal(ctx, key, w)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		g.Log.Warn("uamp: an envelope is not withdrawn", "realm", key.Realm, "id", key.Name, "pause", pause, "error", err)
	}
}

// repeatWithdrawal sends a cancel once more, and removes its record when no other is needed.
func (g *Gateway) repeatWithdrawal(ctx context.Context, key state.Key, w withdrawal) error {
	p, ok := g.Runtime.Partner(key.Realm)
	if !ok {
		return errNoPartner // a reload may bring it back
	}
	err := g.sendCancel(ctx, p, subscription{ID: w.ID, From: w.From, To: w.To, Sent: w.Sent}, "The request was given up.")
	if !isWithdrawn(err) {
		return err
	}
	return g.state.Delete(ctx, key, 0)
}
