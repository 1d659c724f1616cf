package amp

import (
	"context"
	"errors"
	"strings"
	"time"

	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
)

// Limits of contexts.
const (
	contextKind    = "context"
	maxContext     = 64 << 10 // bytes
	contextLife    = time.Hour
	maxContextLife = 24 * time.Hour
	maxSources     = 16 // contexts that are merged
)

// contexts are the shared contexts in the gateway's state. The id of one is REALM:NAME, of the
// realm in which it was made: so all realms of a tenant reach it, and no other tenant. It is
// safe for concurrent use.
type contexts struct{ store state.Store }

// noContext refuses a context that is not there, or that the caller may not read: the two look
// alike (D-M12).
func noContext(id string) error {
	return message.Faultf(message.ContextNotFound, "", "there is no context %.200q", id)
}

func contextKey(tenant, id string) (state.Key, bool) {
	at := strings.LastIndexByte(id, ':')
	key := state.Key{Tenant: tenant, Gateway: Name, Kind: contextKind}
	if at <= 0 || at == len(id)-1 || len(id) > message.MaxID {
		return key, false
	}
	key.Realm, key.Name = id[:at], id[at+1:]
	return key, true
}

// find returns a context that the caller may read.
func (s contexts) find(ctx context.Context, who contextCaller, id string) (sharedContext, error) {
	key, ok := contextKey(who.tenant, id)
	if !ok {
		return sharedContext{}, noContext(id)
	}
	found, version, err := state.Load[sharedContext](ctx, s.store, key)
	if err == nil && (version == 0 || !found.canRead(who.full)) {
		err = noContext(id)
	}
	found.Version = version
	return found, err
}

// add keeps a new context. One that is there is returned instead, if the caller has made it:
// an attempt before has added it.
func (s contexts) add(ctx context.Context, who contextCaller, c sharedContext) (sharedContext, error) {
	added, err := s.save(ctx, who, c)
	if !errors.Is(err, state.ErrVersion) {
		return added, err
	}
	found, err := s.find(ctx, who, c.ID)
	if err == nil && found.Owner != who.full {
		err = noContext(c.ID)
	}
	return found, err
}

// save writes a context over its version.
func (s contexts) save(ctx context.Context, who contextCaller, c sharedContext) (sharedContext, error) {
	key, _ := contextKey(who.tenant, c.ID)
	version := c.Version
	c.Version = 0
	if size := len(mustJSON(c)); size > maxContext {
		return c, message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the context would have %d bytes, more than %d", size, maxContext)
	}
	written, err := state.Save(ctx, s.store, key, version, c, time.Until(c.Expires))
	if errors.Is(err, state.ErrFull) {
		err = message.Faultf(message.InsufficientResources, message.ReasonFull, "%s has as many contexts as it may, or the storage of the tenant is full", who.realm)
	}
	c.Version = written
	return c, err
}

// change changes a context that the caller may read, again when another has changed it
// meanwhile. With a version other than 0 it must be that one.
func (s contexts) change(ctx context.Context, who contextCaller, id string, version int64, change func(*sharedContext) error) (sharedContext, error) {
	for {
		found, err := s.find(ctx, who, id)
		if err != nil {
			return found, err
		}
		if version != 0 && version != found.Version {
			f := message.Faultf(message.InvalidSchema, message.ReasonVersionConflict, "the context has version %d, not %d", found.Version, version)
			f.Details = map[string]any{"version": found.Version}
			return found, f
		}
		if err := change(&found); err != nil {
			return found, err
		}
		changed, err := s.save(ctx, who, found)
		if !errors.Is(err, state.ErrVersion) {
			return changed, err
		}
	}
}
