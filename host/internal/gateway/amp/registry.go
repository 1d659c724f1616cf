package amp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// The capabilities of the registry.
const (
	discoveryCapability      = "discovery"
	registrationCapability   = "registration"
	heartbeatCapability      = "heartbeat"
	deregistrationCapability = "deregistration"
)

var registryCapabilities = []string{discoveryCapability, registrationCapability, heartbeatCapability, deregistrationCapability}

// registry answers a request to the registry.
func (g *Gateway) registry(ctx context.Context, c gateway.Caller, in message.Received, p requestPayload) (responsePayload, error) {
	capability := in.Destination.Capability
	switch {
	case capability == discoveryCapability || capability == "" && len(p.Query) > 0:
		return g.discover(ctx, c, p.Query)
	case capability == registrationCapability:
		return g.register(ctx, c, in.Payload)
	case capability == heartbeatCapability:
		return g.heartbeat(ctx, c, cmp.Or(p.Agent.ID, in.Source.Agent))
	case capability == deregistrationCapability:
		return g.deregister(ctx, c, cmp.Or(p.Agent.ID, in.Source.Agent))
	}
	return responsePayload{}, capabilityFaultAmong(registryCapabilities, capability)
}

// register registers an agent of the caller's realm (M-026, M-027).
func (g *Gateway) register(ctx context.Context, c gateway.Caller, raw json.RawMessage) (responsePayload, error) {
	r, warnings, err := g.registrationOf(c, raw)
	if err != nil {
		return responsePayload{}, err
	}
	if err := g.registered.put(ctx, c, r); err != nil {
		return responsePayload{}, err
	}
	ids := []string{}
	for _, own := range r.Capabilities {
		ids = append(ids, own.ID)
	}
	return responsePayload{Status: statusSuccess, Result: map[string]any{
		"registered": true, "agent_id": r.Agent.ID, "protocol_version": r.Agent.Protocol, "lease_seconds": g.registered.lease.Seconds(), "capabilities": ids, "warnings": warnings,
	}}, nil
}

// heartbeat begins the lease of an agent anew.
func (g *Gateway) heartbeat(ctx context.Context, c gateway.Caller, agent string) (responsePayload, error) {
	err := g.checkOwnAgent(c, agent)
	if err == nil {
		err = g.registered.renew(ctx, c, agent)
	}
	return responsePayload{Status: statusSuccess, Result: map[string]any{"agent_id": agent, "lease_seconds": g.registered.lease.Seconds()}}, err
}

// deregister removes an agent. One that is not there is no error.
func (g *Gateway) deregister(ctx context.Context, c gateway.Caller, agent string) (responsePayload, error) {
	err := g.checkOwnAgent(c, agent)
	if err == nil {
		err = g.registered.store.Delete(ctx, g.registered.key(c, agent), 0)
	}
	return responsePayload{Status: statusSuccess, Result: map[string]any{"agent_id": agent, "deregistered": true}}, err
}

// query is what agents are looked for by (M-030).
type query struct {
	Capabilities []string `json:"capabilities"`
	// Match is "all" or "any" of the capabilities; all without it (D-M8).
	Match       string `json:"match"`
	Constraints struct {
		MaxLatency     *float64 `json:"max_latency_ms"`
		MinSuccessRate *float64 `json:"min_success_rate"`
	} `json:"constraints"`
}

// identity describes an agent (M-001).
type identity struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Framework string `json:"framework"`
	Protocol  string `json:"protocol_version"`
}

func identityOf(a gateway.ExposedAgent) identity {
	version := a.Version
	if version == "" {
		version = "0.0.0"
	}
	return identity{ID: nameOf(a), Name: a.Name, Version: version, Framework: "custom", Protocol: message.Version}
}

// States of agents. An agent without a health endpoint, or before its first probe, is unknown.
const (
	statusHealthy   = "healthy"
	statusDegraded  = "degraded"
	statusUnhealthy = "unhealthy"
	statusUnknown   = "unknown"
)

// listed is an agent that was found (M-031).
type listed struct {
	Agent        identity    `json:"agent"`
	Capabilities []described `json:"capabilities"`
	Endpoints    *endpoints  `json:"endpoints,omitempty"`
	Status       string      `json:"status"`
	Metrics      metrics     `json:"metrics"`
	Matched      []string    `json:"matched"`
}

// discover lists the agents that the caller may see and that have the capabilities: those
// with all, and apart those with some.
func (g *Gateway) discover(ctx context.Context, c gateway.Caller, raw json.RawMessage) (responsePayload, error) {
	var q query
	if len(raw) > 0 {
		if err := readMember("message.payload.query", raw, &q); err != nil {
			return responsePayload{}, err
		}
	}
	slices.Sort(q.Capabilities)
	q.Capabilities = slices.Compact(q.Capabilities)
	known, err := g.visible(ctx, c)
	if err != nil {
		return responsePayload{}, err
	}
	agents, partial := []listed{}, []listed{}
	for _, one := range known {
		one.match(q)
		one.Metrics = g.worst(c.Principal.Tenant, one.Agent.ID, q.Capabilities)
		switch {
		case !one.fits(q):
		case len(one.Matched) == len(q.Capabilities) || q.Match == "any" && len(one.Matched) > 0:
			agents = append(agents, one)
		case len(one.Matched) > 0:
			partial = append(partial, one)
		}
	}
	return responsePayload{Status: statusSuccess, Result: map[string]any{"agents": agents, "partial_matches": partial, "total": len(agents)}}, nil
}

// visible lists the agents that the caller may see: our exposed ones, and those that its own
// realm has registered and that are not unhealthy, with the address where they are reached and
// without its credential.
func (g *Gateway) visible(ctx context.Context, c gateway.Caller) (list []listed, err error) {
	for _, a := range g.Runtime.ExposedAgents(c) {
		list = append(list, listed{Agent: identityOf(a), Capabilities: describe(capabilitiesOf(a)), Status: statusHealthy, Matched: []string{}})
	}
	registered, err := g.registered.list(ctx, c)
	for _, r := range registered {
		status := g.probes.of(realmKeyOf(c), r).status
		if status == statusUnhealthy {
			continue
		}
		list = append(list, listed{Agent: r.Agent, Capabilities: r.Capabilities, Endpoints: &endpoints{Invoke: r.Endpoints.Invoke, GRPC: r.Endpoints.GRPC}, Status: status, Matched: []string{}})
	}
	return list, err
}

// match notes which of the capabilities the agent has.
func (l *listed) match(q query) {
	for _, id := range q.Capabilities {
		if slices.ContainsFunc(l.Capabilities, func(own described) bool { return own.ID == id }) {
			l.Matched = append(l.Matched, id)
		}
	}
}

// worst are the least good of the metrics of an agent's capabilities.
func (g *Gateway) worst(tenant, agent string, capabilities []string) metrics {
	var got metrics
	for _, id := range capabilities {
		one := g.measures.of(tenant, agent, id)
		got.Latency = max(got.Latency, one.Latency)
		if rate := one.SuccessRate; rate != nil && (got.SuccessRate == nil || *rate < *got.SuccessRate) {
			got.SuccessRate = rate
		}
		got.Samples, got.Measured = got.Samples+one.Samples, got.Measured || one.Measured
	}
	return got
}

// fits reports whether what was measured of an agent is within the constraints. One that
// was not measured fits (D-M9).
func (l listed) fits(q query) bool {
	most, least := q.Constraints.MaxLatency, q.Constraints.MinSuccessRate
	return !l.Metrics.Measured || (most == nil || l.Metrics.Latency <= *most) && (least == nil || *l.Metrics.SuccessRate >= *least)
}

// requirements are what a task needs (M-032).
type requirements struct {
	Capabilities []string `json:"capabilities"`
	Tokens       *float64 `json:"estimated_tokens"`
	Deadline     string   `json:"deadline"`
}

// offer is an agent that can do one of the capabilities (M-033).
type offer struct {
	Agent      string   `json:"agent_id"`
	Capability string   `json:"capability"`
	Version    string   `json:"version"`
	Latency    *float64 `json:"estimated_latency_ms"`
}

// Kinds of negotiation.
const (
	capabilityCheck = "capability_check"
	protocolVersion = "protocol_version"
)

// negotiate answers whether a task can be done, or which version is spoken (M-032, M-079).
func (g *Gateway) negotiate(c gateway.Caller, to message.Destination, p requestPayload) (responsePayload, error) {
	switch p.Negotiation {
	case protocolVersion:
		if !slices.Contains(p.Supported, message.Version) {
			f := message.Faultf(message.InvalidSchema, message.ReasonVersion, "none of the supported versions is spoken here")
			f.Details = map[string]any{"supported_versions": []string{message.Version}}
			return responsePayload{}, f
		}
		return responsePayload{Status: statusSuccess, Result: map[string]any{"selected": message.Version}}, nil
	case capabilityCheck:
		return g.checkCapabilities(c, to, p.Requirements)
	}
	return responsePayload{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.negotiation_type must be %s or %s", capabilityCheck, protocolVersion)
}

func (g *Gateway) checkCapabilities(c gateway.Caller, to message.Destination, need *requirements) (responsePayload, error) {
	if need == nil || len(need.Capabilities) == 0 {
		return responsePayload{}, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.requirements.capabilities is missing")
	}
	left, err := timeLeft(need.Deadline)
	if err != nil {
		return responsePayload{}, err
	}
	agents := g.Runtime.ExposedAgents(c)
	if to.Agent != "" {
		a, err := findAgent(agents, to.Agent)
		if err != nil {
			return responsePayload{}, err
		}
		agents = []gateway.ExposedAgent{a}
	}
	offers, missing, reasons := []offer{}, []string{}, []string{}
	for _, id := range need.Capabilities {
		before := len(offers)
		reason := "no agent has this capability"
		for _, a := range agents {
			capability, has := findCapability(a, id)
			if !has {
				continue
			}
			m := g.measures.of(c.Principal.Tenant, nameOf(a), id)
			switch {
			case !g.takesTokens(capability, need.Tokens):
				reason = "no agent takes estimated_tokens: its constraints have a max_tokens"
			case left == nil || *left > 0 && (!m.Measured || m.Latency <= *left):
				offers = append(offers, newOffer(a, capability, m))
			default:
				reason = "no agent is done before the deadline"
			}
		}
		if len(offers) == before {
			missing, reasons = append(missing, id), append(reasons, id+": "+reason)
		}
	}
	return responsePayload{Status: statusSuccess, Result: map[string]any{"feasible": len(missing) == 0, "offers": offers, "missing": missing, "reasons": reasons}}, nil
}

func newOffer(a gateway.ExposedAgent, c gateway.Capability, m metrics) offer {
	o := offer{Agent: nameOf(a), Capability: c.ID, Version: describe([]gateway.Capability{c})[0].Version}
	if m.Measured {
		o.Latency = &m.Latency
	}
	return o
}

// timeLeft is the time until a deadline, in ms; nil without one.
func timeLeft(deadline string) (*float64, error) {
	if deadline == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, deadline)
	if err != nil {
		return nil, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "payload.requirements.deadline must be a time as in 2025-01-27T11:00:00Z")
	}
	left := float64(time.Until(at)) / millisecondF
	return &left, nil
}
