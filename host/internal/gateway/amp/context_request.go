package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
)

// contextCapability is the capability of the agent "context" (M-056).
const contextCapability = "context-management"

// contextRequest asks for an operation on contexts.
type contextRequest struct {
	Operation string        `json:"operation"`
	ID        string        `json:"context_id"`
	Sources   []string      `json:"source_ids"`
	Mode      string        `json:"mode"` // merge or replace
	IfVersion int64         `json:"if_version"`
	Given     contextValues `json:"context"`
	name      string        // of a context that is made
	change    changeID
	check     func(sharedContext) error // refuses an update before it is written; nil for none
}

func (r contextRequest) checkUpdated(c sharedContext) error {
	if r.check == nil {
		return nil
	}
	return r.check(c)
}

// contextValues are what a caller gives of a context. A member that is left out is nil.
type contextValues struct {
	ID      string  `json:"id"`
	Session string  `json:"session_id"`
	Expires string  `json:"expires_at"`
	Shared  object  `json:"shared_memory"`
	Private object  `json:"agent_memory"`
	Access  *access `json:"access_control"`
}

// isContext reports whether a request is for the contexts.
func isContext(to message.Destination) bool {
	return to.Agent == contextAgent || to.Agent == registryAgent && to.Capability == contextCapability
}

// contextCallerOf is the sender of a message. Contexts need a partner of the configuration.
func (g *Gateway) contextCallerOf(c gateway.Caller, agent string) (contextCaller, error) {
	if _, err := g.partnerOf(c, "a context"); err != nil {
		return contextCaller{}, err
	}
	if err := checkRight(c, gateway.MayContexts); err != nil {
		return contextCaller{}, err
	}
	own := cmp.Or(agent, c.Principal.PeerSwarm())
	if own == everyone {
		return contextCaller{}, message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "an agent with the id %s has no contexts: it means all agents", everyone)
	}
	return contextCaller{tenant: c.Principal.Tenant, realm: c.Realm, full: own + "@" + c.Realm, own: own}, nil
}

// manageContext does the operation of a message. A repeat makes no second context.
func (g *Gateway) manageContext(ctx context.Context, c gateway.Caller, in message.Received) (responsePayload, error) {
	if to := in.Destination.Capability; to != "" && to != contextCapability {
		return responsePayload{}, capabilityFaultAmong([]string{contextCapability}, to)
	}
	who, err := g.contextCallerOf(c, in.Source.Agent)
	if err != nil {
		return responsePayload{}, err
	}
	digest, err := in.Digest(hopHints...)
	if err != nil {
		return responsePayload{}, err
	}
	r := contextRequest{name: uuid.NewString(), change: changeOf(c, in.ID, digest)}
	if in.ID != "" {
		r.name = ownID("context", c, in.ID)
	}
	if err := readPayload(in.Payload, &r); err != nil {
		return responsePayload{}, err
	}
	done, err := g.contexts.do(ctx, who, r)
	p := responsePayload{Status: statusSuccess, Result: map[string]any{"context": done.shownTo(who)}}
	if done.Conflicts != nil {
		p.Metadata = map[string]any{"conflicts": done.Conflicts}
	}
	return p, err
}

// do does an operation for a caller and returns the context as it is then.
func (s contexts) do(ctx context.Context, who contextCaller, r contextRequest) (sharedContext, error) {
	r.ID = cmp.Or(r.ID, r.Given.ID)
	switch r.Operation {
	case "create":
		return s.create(ctx, who, r)
	case "get":
		return s.find(ctx, who, r.ID)
	case "update":
		return s.update(ctx, who, r)
	case "fork":
		return s.derive(ctx, who, r, []string{r.ID})
	case "merge":
		if len(r.Sources) < 2 || len(r.Sources) > maxSources {
			return sharedContext{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.source_ids must have 2 to %d ids", maxSources)
		}
		return s.derive(ctx, who, r, r.Sources)
	}
	return sharedContext{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.operation must be create, get, update, merge or fork")
}

func (s contexts) create(ctx context.Context, who contextCaller, r contextRequest) (sharedContext, error) {
	if r.ID != "" {
		return sharedContext{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.context.id of a new context is made here: leave it out")
	}
	made, err := newContext(who, r)
	if err != nil {
		return made, err
	}
	if err := made.setMemory(who, r); err != nil {
		return made, err
	}
	if err := r.checkUpdated(made); err != nil {
		return made, err
	}
	return s.add(ctx, who, made)
}

// newContext is a context of the caller without memory.
func newContext(who contextCaller, r contextRequest) (c sharedContext, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	c = sharedContext{ID: who.realm + ":" + r.name, Session: r.Given.Session, Created: now, Expires: now.Add(contextLife), Owner: who.full, Shared: object{}, Private: object{}}
	c.Lineage.Root = c.ID
	c.addChange(r.change)
	if len(c.Session) > message.MaxID {
		return c, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.context.session_id has more than %d bytes", message.MaxID)
	}
	if err := c.setExpires(r.Given.Expires); err != nil {
		return c, err
	}
	c.Access, err = accessOf(*cmp.Or(r.Given.Access, &access{}), who.realm)
	return c, err
}

// setExpires sets when the context ends, if that is given.
func (c *sharedContext) setExpires(given string) error {
	if given == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || !at.After(time.Now()) || at.After(time.Now().Add(maxContextLife)) {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.context.expires_at must be a time as in 2025-01-27T11:00:00Z, at most %s from now", maxContextLife)
	}
	c.Expires = at.UTC()
	return nil
}

// update changes what the caller may change: a writer the shared memory and the end, a reader
// its own memory, the owner who has access (M-053, M-057, M-060).
func (c *sharedContext) update(who contextCaller, r contextRequest) error {
	if (r.Given.Shared != nil || r.Given.Expires != "") && !c.canWrite(who.full) {
		return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "the caller may read the context, and not write it")
	}
	if r.Given.Access != nil {
		if who.full != c.Owner {
			return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "access_control is changed by the agent that made the context")
		}
		given, err := accessOf(*r.Given.Access, realmOf(c.ID))
		if err != nil {
			return err
		}
		c.Access = given
	}
	if err := c.setExpires(r.Given.Expires); err != nil {
		return err
	}
	if r.Given.Shared != nil || r.Given.Expires != "" || r.Given.Access != nil {
		c.addChange(r.change)
	}
	if err := c.applyBounds(); err != nil {
		return err
	}
	return c.setMemory(who, r)
}

// versionAfter is the next version of a context: greater than the one before, and than each that a
// context of the same name had which has ended.
func versionAfter(version int64) int64 { return max(version+1, time.Now().UnixMilli()) }

// realmOf is the realm in which a context was made.
func realmOf(id string) string {
	key, _ := contextKey("", id)
	return key.Realm
}

// setMemory changes the shared memory and the caller's own (M-058).
func (c *sharedContext) setMemory(who contextCaller, r contextRequest) error {
	apply := patch
	switch r.Mode {
	case "", "merge":
	case "replace":
		apply = func(_, to json.RawMessage) json.RawMessage { return to }
	default:
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.mode must be merge or replace")
	}
	for agent, to := range r.Given.Private {
		if agent != who.own {
			return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "agent_memory of %.100q is not the caller's", agent)
		}
		if string(to) == "null" {
			delete(c.Private, who.full)
			continue
		}
		c.Private[who.full] = apply(c.Private[who.full], to)
	}
	if r.Given.Shared != nil {
		shared, _ := objectOf(apply(wire.MustEncode(c.Shared), wire.MustEncode(r.Given.Shared)))
		c.Shared = shared
	}
	return nil
}

// derive makes a context from others that the caller may read: the copy of one, or several as
// one (M-054, M-055, M-061, M-062).
func (s contexts) derive(ctx context.Context, who contextCaller, r contextRequest, from []string) (sharedContext, error) {
	made, err := newContext(who, r)
	if err != nil {
		return made, err
	}
	merged, sources, writes := len(from) > 1, []sharedContext{}, true
	for _, id := range from {
		source, err := s.find(ctx, who, id)
		if err != nil {
			return made, err
		}
		sources, writes = append(sources, source), writes && source.canWrite(who.full)
	}
	made.Lineage = lineage{Parent: sources[0].ID, Root: sources[0].Lineage.Root}
	for _, source := range sources {
		made.addBounds(source, writes)
		made.addMemory(who, source, merged)
	}
	if err := made.applyBounds(); err != nil {
		return made, err
	}
	if err := made.setMemory(who, r); err != nil {
		return made, err
	}
	return s.add(ctx, who, made)
}

// addMemory adds the memory of a source. A fork gets the private memory of its caller, a merge
// the private memory of every agent.
func (c *sharedContext) addMemory(who contextCaller, source sharedContext, merged bool) {
	var conflicts []string
	c.Shared, conflicts = join(c.Shared, source.Shared, "")
	if !merged {
		if own, has := source.Private[who.full]; has {
			c.Private[who.full] = own
		}
		return
	}
	c.Private, _ = join(c.Private, source.Private, "")
	c.Conflicts = append(append([]string{}, c.Conflicts...), conflicts...)
	c.Lineage.Merged = append(c.Lineage.Merged, source.ID)
	if source.Expires.Before(c.Expires) {
		c.Expires = source.Expires
	}
}
