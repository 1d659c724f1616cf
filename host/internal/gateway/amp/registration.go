package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
)

// Limits of registrations.
const (
	registrationKind = "agent"
	maxRegistered    = 256      // agents of a realm
	maxRegistration  = 32 << 10 // bytes
	maxDeclared      = 64       // capabilities of an agent
	registeredPage   = 100      // records that are read at once
)

// defaultLease is how long a registration counts where the options have no lease.
const defaultLease = 5 * time.Minute

// frameworks are the frameworks of the document (M-001).
var frameworks = []string{"langchain", "crewai", "autogen", "custom"}

// registration is an agent of a realm that has registered, as the state has it (M-026).
type registration struct {
	Agent          identity       `json:"agent"`
	Capabilities   []described    `json:"capabilities"`
	Endpoints      endpoints      `json:"endpoints"`
	Authentication authentication `json:"authentication"`
}

type endpoints struct {
	Invoke string `json:"invoke,omitempty"`
	Health string `json:"health,omitempty"`
}

// authentication is what the agent is shown by its callers. It is never returned (M-029).
type authentication struct {
	Type        string `json:"type,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// registrations are the agents of other parties in the gateway's state. It is safe for
// concurrent use.
type registrations struct {
	store state.Store
	lease time.Duration
	// adding serializes new registrations, which count the ones before.
	adding sync.Mutex
}

func (s *registrations) key(c gateway.Caller, agent string) state.Key {
	return state.Key{Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: registrationKind, Name: agent}
}

// find returns a registration; its agent has no id if there is none.
func (s *registrations) find(ctx context.Context, c gateway.Caller, agent string) (registration, error) {
	if agent == "" {
		return registration{}, nil
	}
	r, _, err := state.Load[registration](ctx, s.store, s.key(c, agent))
	return r, err
}

// list returns the agents of the caller's realm, by id.
func (s *registrations) list(ctx context.Context, c gateway.Caller) (all []registration, err error) {
	of := s.key(c, "")
	for after := (state.Key{}); ; {
		page, err := s.store.List(ctx, of, after, registeredPage)
		if err != nil {
			return nil, err
		}
		for _, record := range page {
			after = record.Key
			var r registration
			if err := json.Unmarshal(record.Value, &r); err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		if len(page) < registeredPage {
			return all, nil
		}
	}
}

// put registers an agent of the caller's realm, or replaces its registration.
func (s *registrations) put(ctx context.Context, c gateway.Caller, r registration) error {
	if size := len(mustJSON(r)); size > maxRegistration {
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the registration has %d bytes, more than %d", size, maxRegistration)
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	all, err := s.list(ctx, c)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(all, func(one registration) bool { return one.Agent.ID == r.Agent.ID })
	if !known && len(all) >= maxRegistered {
		return message.Faultf(message.InsufficientResources, message.ReasonFull, "%s has %d registered agents, as many as it may: deregister one", c.Realm, maxRegistered)
	}
	return s.change(ctx, c, r.Agent.ID, func(stored *registration) error { *stored = r; return nil })
}

// renew begins the lease of an agent anew.
func (s *registrations) renew(ctx context.Context, c gateway.Caller, agent string) error {
	return s.change(ctx, c, agent, func(stored *registration) error {
		if stored.Agent.ID == "" {
			return message.Faultf(message.AuthenticationFailed, message.ReasonNotRegistered, "the agent %.100q is not registered, or its lease is over", agent)
		}
		return nil
	})
}

func (s *registrations) change(ctx context.Context, c gateway.Caller, agent string, change func(*registration) error) error {
	err := state.Change(ctx, s.store, s.key(c, agent), s.lease, change)
	if errors.Is(err, state.ErrFull) {
		return message.Faultf(message.InsufficientResources, message.ReasonFull, "the storage of the tenant is full")
	}
	return err
}

// registrationOf reads a registration of the caller's realm, and what is to be said of it.
func (g *Gateway) registrationOf(c gateway.Caller, raw json.RawMessage) (r registration, warnings []string, err error) {
	if err := readPayload(raw, &r); err != nil {
		return r, nil, err
	}
	if err := g.checkOwnAgent(c, r.Agent.ID); err != nil {
		return r, nil, err
	}
	r.Agent.Name, r.Agent.Framework = cmp.Or(r.Agent.Name, r.Agent.ID), cmp.Or(r.Agent.Framework, "custom")
	r.Agent.Version, r.Agent.Protocol = cmp.Or(r.Agent.Version, "0.0.0"), cmp.Or(r.Agent.Protocol, message.Version)
	if err := checkRegistration(r); err != nil {
		return r, nil, err
	}
	for _, address := range []string{r.Endpoints.Invoke, r.Endpoints.Health} {
		if address != "" {
			if err := g.checkAddress(c, "endpoints", address); err != nil {
				return r, nil, err
			}
		}
	}
	r.Agent.Protocol = message.Version
	warnings = []string{}
	if r.Endpoints.Invoke == "" {
		warnings = append(warnings, "endpoints.invoke is missing: agents here cannot write to it, unless its partner table has a url")
	}
	return r, warnings, nil
}

// checkOwnAgent refuses an id that is none of the caller's realm, or that no agent of ours
// could write to.
func (g *Gateway) checkOwnAgent(c gateway.Caller, id string) error {
	p, ok := g.Runtime.Partner(c.Realm)
	if !ok {
		return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "a registration needs a partner of the configuration")
	}
	if err := checkRight(c, gateway.MayRegister); err != nil {
		return err
	}
	if id == "" {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.id is missing")
	}
	if _, err := gateway.AgentName(id); err != nil || len(id) > message.MaxID || slices.Contains(reserved, id) {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.id %.100q cannot be the id of an agent", id)
	}
	if !ownsAgent(p, c.Principal.PeerSwarm(), id) {
		return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "payload.agent.id is no agent of the caller")
	}
	return nil
}

// checkRight refuses a realm whose table does not give it a right.
func checkRight(c gateway.Caller, right gateway.Right) error {
	if c.May.Has(right) {
		return nil
	}
	return message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "%s may not do this: add %q to may in [gateways.amp.partners.%s]", c.Realm, right, c.Realm)
}

func checkRegistration(r registration) error {
	major, _, _ := strings.Cut(r.Agent.Protocol, ".")
	switch {
	case !slices.Contains(frameworks, r.Agent.Framework):
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.framework must be one of langchain, crewai, autogen, custom")
	case major != "1":
		f := message.Faultf(message.InvalidSchema, message.ReasonVersion, "version %.40q is not spoken here", r.Agent.Protocol)
		f.Details = map[string]any{"supported_versions": []string{message.Version}}
		return f
	case len(r.Capabilities) > maxDeclared:
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "payload.capabilities has more than %d", maxDeclared)
	}
	for _, c := range r.Capabilities {
		if c.ID == "" || len(c.ID) > message.MaxID {
			return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "each of payload.capabilities needs an id of at most %d bytes", message.MaxID)
		}
	}
	return nil
}
