package amp

import (
	"context"
	"errors"
	"strings"
	"time"

	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/gateway/wire"
)

// contextKind is the kind of the records of contexts.
const contextKind = "context"

// Limits of contexts.
const (
	maxContext     = 64 << 10  // bytes, without private memory
	maxPrivate     = 16 << 10  // bytes of the private memory of a realm's agents
	maxAllPrivate  = 128 << 10 // bytes of the private memory of all agents
	contextLife    = time.Hour
	maxContextLife = verb.MaxContextLife
	maxSources     = verb.MaxContextSources
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
	found, err := s.load(ctx, who.tenant, id)
	for _, of := range found.Bounds {
		if err == nil {
			var bound sharedContext
			bound, err = s.load(ctx, who.tenant, of)
			found.bounds = append(found.bounds, bound)
		}
	}
	if err == nil && !found.canRead(who.full) {
		err = noContext(id)
	}
	return found, err
}

// load returns a context without its bounds. One that is not there is the zero value, which has
// no reader.
func (s contexts) load(ctx context.Context, tenant, id string) (c sharedContext, err error) {
	key, ok := contextKey(tenant, id)
	if !ok {
		return c, nil
	}
	c, record, err := state.Load[sharedContext](ctx, s.store, key)
	c.record = record
	return c, err
}

// add keeps a new context. One that is there is returned instead, if the caller has made it:
// an attempt before has added it.
func (s contexts) add(ctx context.Context, who contextCaller, c sharedContext) (sharedContext, error) {
	added, err := s.save(ctx, who, c)
	if !errors.Is(err, state.ErrVersion) {
		added.made = true
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
	if err := c.checkSize(); err != nil {
		return c, err
	}
	record, err := state.Save(ctx, s.store, key, c.record, c, time.Until(c.Expires))
	if errors.Is(err, state.ErrFull) {
		err = message.Faultf(message.InsufficientResources, message.ReasonFull, "%s has as many contexts as it may, %d, or the storage of the tenant is full: raise [tenants.%s] storage", key.Realm, state.MaxOfRealm, who.tenant)
	}
	c.record = record
	return c, err
}

// checkSize refuses a context that is too large. The private memory of a realm takes the space of no
// other realm, nor of the shared memory.
func (c sharedContext) checkSize() error {
	all, sizes := 0, map[string]int{}
	for full, memory := range c.Private {
		size, realm := len(full)+len(memory), realmIn(full)
		sizes[realm] += size
		if all += size; sizes[realm] > maxPrivate || all > maxAllPrivate {
			return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "agent_memory of %s would have more than %d bytes, or that of all agents more than %d", realm, maxPrivate, maxAllPrivate)
		}
	}
	c.Private, c.Changes = nil, nil
	if size := len(wire.MustEncode(c)); size > maxContext {
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the context would have %d bytes besides agent_memory, more than %d", size, maxContext)
	}
	return nil
}

// update changes a context that the caller may read, again when another has changed it
// meanwhile. A repeat of a change returns the context as it is.
func (s contexts) update(ctx context.Context, who contextCaller, r contextRequest) (sharedContext, error) {
	for {
		found, err := s.find(ctx, who, r.ID)
		if err != nil {
			return found, err
		}
		if done, err := found.hasChange(r.change); done || err != nil {
			return found, err
		}
		if r.IfVersion != 0 && r.IfVersion != found.Version {
			f := message.Faultf(message.InvalidSchema, message.ReasonVersionConflict, "the context has version %d, not %d", found.Version, r.IfVersion)
			f.Details = map[string]any{"version": found.Version}
			return found, f
		}
		if err := found.update(who, r); err != nil {
			return found, err
		}
		if err := r.checkUpdated(found); err != nil {
			return found, err
		}
		changed, err := s.save(ctx, who, found)
		if !errors.Is(err, state.ErrVersion) {
			return changed, err
		}
	}
}
