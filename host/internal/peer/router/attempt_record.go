package router

import (
	"context"
	"errors"
	"strconv"
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

// beginAttempt records that a message may leave the host. earlier reports an attempt of an
// earlier host, of which only the beginning is known. A record of this host is of an attempt
// that sent nothing: it could not be removed, or the store told its writing as failed.
func (r *Router) beginAttempt(ctx context.Context, box swarm.OutboxKey, peer Peer, id string) (earlier bool, err error) {
	key, host := attemptKey(box, peer, id), strconv.FormatInt(r.started.UnixNano(), 10)
	_, err = r.opt.State.Put(ctx, state.Record{Key: key, Value: []byte(host), Expires: r.opt.Now().Add(attemptKept)})
	if !errors.Is(err, state.ErrVersion) {
		return false, err
	}
	found, err := r.opt.State.Get(ctx, key)
	return err == nil && string(found.Value) != host, err
}

// endAttempt removes the record of an attempt, if its peer needs one. A record that stays
// does harm only to a message that the next host sends: it is in doubt.
func (r *Router) endAttempt(ctx context.Context, box swarm.OutboxKey, peer Peer, id string) {
	if !peer.FailInDoubt {
		return
	}
	if err := r.opt.State.Delete(context.WithoutCancel(ctx), attemptKey(box, peer, id), 0); err != nil {
		r.opt.Logger.Error("cannot forget an attempt", "peer", box.Peer, "message_id", id, "err", err)
	}
}
