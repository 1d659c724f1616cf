package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
)

// registrationKind is the kind of the records of registrations.
const registrationKind = "agent"

// Limits of registrations.
const (
	maxRegistered   = 256      // agents of a realm
	maxRegistration = 32 << 10 // bytes
	maxDeclared     = 64       // capabilities of an agent
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
	// GRPC is the address of a host that serves the service of M-097.
	GRPC   string `json:"grpc,omitempty"`
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
	// adding serializes the new registrations of a realm, which count the ones before.
	adding state.RealmLocks
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
	err = state.Each(ctx, s.store, s.key(c, ""), func(record state.Record) error {
		var r registration
		err := json.Unmarshal(record.Value, &r)
		all = append(all, r)
		return err
	})
	return all, err
}

// put registers an agent of the caller's realm, or replaces its registration.
func (s *registrations) put(ctx context.Context, c gateway.Caller, r registration) error {
	if size := len(wire.MustEncode(r)); size > maxRegistration {
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "the registration has %d bytes, more than %d", size, maxRegistration)
	}
	release, err := s.adding.Acquire(ctx, s.key(c, ""))
	if err != nil {
		return err
	}
	defer release()
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
		return message.Faultf(message.InsufficientResources, message.ReasonFull, "the storage of the tenant is full: raise [tenants.%s] storage", c.Principal.Tenant)
	}
	return err
}

// checkRegistered refuses in the profile strict what an agent that may register sends before it has,
// but to the registry (M-026, D-M10).
func (g *Gateway) checkRegistered(ctx context.Context, c gateway.Caller, in message.Received) error {
	if !g.Strict || !c.May.Has(gateway.MayRegister) || in.Destination.Agent == registryAgent {
		return nil
	}
	r, err := g.registered.find(ctx, c, in.Source.Agent)
	if err == nil && r.Agent.ID == "" {
		err = message.Faultf(message.AuthenticationFailed, message.ReasonNotRegistered, "the agent %.100q is not registered, or its lease is over: it registers first, as the profile is strict and [gateways.amp.partners.%s] has \"register\" in may", in.Source.Agent, c.Realm)
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
	for _, of := range []struct{ member, address string }{{"endpoints.invoke", r.Endpoints.Invoke}, {"endpoints.grpc", r.Endpoints.GRPC}, {"endpoints.health", r.Endpoints.Health}} {
		if of.address != "" {
			if err := g.checkAddress(c, of.member, of.address); err != nil {
				return r, nil, err
			}
		}
	}
	if u, err := url.Parse(r.Endpoints.GRPC); err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return r, nil, message.Faultf(message.InvalidSchema, message.ReasonCallback, "endpoints.grpc must be the address of a host alone, as in https://agent.example.com")
	}
	r.Agent.Protocol = message.Version
	warnings = []string{}
	if r.Endpoints.Invoke == "" && r.Endpoints.GRPC == "" {
		warnings = append(warnings, "endpoints.invoke is missing: agents here cannot write to it, unless its partner table has a url")
	}
	return r, warnings, nil
}

// checkOwnAgent refuses an id that is none of the caller's realm, or that no agent of ours
// could write to.
func (g *Gateway) checkOwnAgent(c gateway.Caller, id string) error {
	p, err := g.partnerOf(c, "a registration")
	if err != nil {
		return err
	}
	if err := checkRight(c, gateway.MayRegister); err != nil {
		return err
	}
	if id == "" {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.id is missing")
	}
	_, err = gateway.AgentName(id)
	switch {
	case slices.Contains(reserved, id):
		err = errors.New("it is an agent of the mesh itself")
	case len(id) > message.MaxID:
		err = fmt.Errorf("it has more than %d bytes", message.MaxID)
	}
	if err != nil {
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.id %.100q cannot be the id of an agent: %v", id, err)
	}
	return checkOwner(c, p, "payload.agent.id", id)
}

func checkRegistration(r registration) error {
	major, _, _ := strings.Cut(r.Agent.Protocol, ".")
	switch {
	case !slices.Contains(frameworks, r.Agent.Framework):
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.agent.framework of %.100q is %.40q, and must be one of %s", r.Agent.ID, r.Agent.Framework, strings.Join(frameworks, ", "))
	case major != "1":
		f := message.Faultf(message.InvalidSchema, message.ReasonVersion, "payload.agent.protocol_version %.40q of %.100q is not spoken here", r.Agent.Protocol, r.Agent.ID)
		f.Details = map[string]any{"supported_versions": []string{message.Version}}
		return f
	case len(r.Capabilities) > maxDeclared:
		return message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "payload.capabilities of %.100q has %d entries, more than %d", r.Agent.ID, len(r.Capabilities), maxDeclared)
	}
	for i, c := range r.Capabilities {
		if c.ID == "" || len(c.ID) > message.MaxID {
			return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.capabilities[%d] of %.100q needs an id of at most %d bytes", i, r.Agent.ID, message.MaxID)
		}
	}
	return r.Authentication.check()
}

// bearerType is the type of the credentials that callers show.
const bearerType = "bearer"

// check refuses what cannot be shown as a bearer token
// (https://www.rfc-editor.org/rfc/rfc6750#section-2.1).
func (a authentication) check() error {
	switch {
	case a == authentication{}:
		return nil
	case a.Type != "" && a.Type != bearerType:
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.authentication.type is %.40q: agents here show credentials as %s", a.Type, bearerType)
	case a.Credentials == "":
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.authentication.credentials is missing")
	case strings.ContainsFunc(a.Credentials, func(r rune) bool { return r <= ' ' || r > '~' }):
		return message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.authentication.credentials must be visible ASCII without blanks")
	}
	return nil
}
