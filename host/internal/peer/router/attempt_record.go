package router

import (
	"context"
	"errors"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// attemptKept is how long a record outlives an attempt whose end was not recorded.
const attemptKept = 30 * 24 * time.Hour

// attemptKey is the key of the record that a message may have left the host.
func attemptKey(box swarm.OutboxKey, peer Peer, id string) state.Key {
	return state.Key{Tenant: box.Task.Tenant, Gateway: peer.Gateway, Realm: box.Peer, Kind: "attempt", Name: id}
}

// beginAttempt records that a message may leave the host. earlier reports an attempt of
// which only the beginning is known.
func (r *Router) beginAttempt(ctx context.Context, box swarm.OutboxKey, peer Peer, id string) (earlier bool, err error) {
	_, err = r.opt.State.Put(ctx, state.Record{Key: attemptKey(box, peer, id), Expires: r.opt.Now().Add(attemptKept)})
	if errors.Is(err, state.ErrVersion) {
		return true, nil
	}
	return false, err
}

// endAttempt removes the record of an attempt, if its peer needs one. A record that stays
// does harm only to a message that an operator sends again: it is in doubt once more.
func (r *Router) endAttempt(ctx context.Context, box swarm.OutboxKey, peer Peer, id string) {
	if !peer.FailInDoubt {
		return
	}
	if err := r.opt.State.Delete(context.WithoutCancel(ctx), attemptKey(box, peer, id), 0); err != nil {
		r.opt.Logger.Error("cannot forget an attempt", "peer", box.Peer, "message_id", id, "err", err)
	}
}
