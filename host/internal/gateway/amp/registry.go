package amp

import (
	"encoding/json"
	"slices"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// The capabilities of the registry.
const discoveryCapability = "discovery"

var registryCapabilities = []string{discoveryCapability}

// registry answers a request to the registry.
func (g *Gateway) registry(c gateway.Caller, capability string, p requestPayload) (responsePayload, error) {
	if capability == discoveryCapability || capability == "" && len(p.Query) > 0 {
		return g.discover(c, p.Query)
	}
	return responsePayload{}, capabilityFaultAmong(registryCapabilities, capability)
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

// listed is an agent that was found (M-031).
type listed struct {
	Agent        identity    `json:"agent"`
	Capabilities []described `json:"capabilities"`
	Status       string      `json:"status"`
	Metrics      metrics     `json:"metrics"`
	Matched      []string    `json:"matched"`
}

// discover lists the agents that the caller may see and that have the capabilities: those
// with all, and apart those with some.
func (g *Gateway) discover(c gateway.Caller, raw json.RawMessage) (responsePayload, error) {
	var q query
	if len(raw) > 0 {
		if err := readPayload(raw, &q); err != nil {
			return responsePayload{}, err
		}
	}
	slices.Sort(q.Capabilities)
	q.Capabilities = slices.Compact(q.Capabilities)
	agents, partial := []listed{}, []listed{}
	for _, a := range g.Runtime.ExposedAgents(c) {
		one := listed{Agent: identityOf(a), Capabilities: describe(capabilitiesOf(a)), Status: "healthy", Matched: []string{}}
		for _, id := range q.Capabilities {
			if _, has := findCapability(a, id); has {
				one.Matched = append(one.Matched, id)
			}
		}
		one.Metrics = g.worst(c.Principal.Tenant, nameOf(a), q.Capabilities)
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

// worst are the least good of the metrics of an agent's capabilities.
func (g *Gateway) worst(tenant, agent string, capabilities []string) metrics {
	got := metrics{SuccessRate: 1}
	for _, id := range capabilities {
		one := g.measures.of(tenant, agent, id)
		got.Latency, got.SuccessRate = max(got.Latency, one.Latency), min(got.SuccessRate, one.SuccessRate)
		got.Samples, got.Measured = got.Samples+one.Samples, got.Measured || one.Measured
	}
	return got
}

// fits reports whether what was measured of an agent is within the constraints. One that
// was not measured fits (D-M9).
func (l listed) fits(q query) bool {
	most, least := q.Constraints.MaxLatency, q.Constraints.MinSuccessRate
	return !l.Metrics.Measured || (most == nil || l.Metrics.Latency <= *most) && (least == nil || l.Metrics.SuccessRate >= *least)
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
		known := false
		for _, a := range agents {
			capability, has := findCapability(a, id)
			if !has {
				continue
			}
			known = true
			if m := g.measures.of(c.Principal.Tenant, nameOf(a), id); left == nil || *left > 0 && (!m.Measured || m.Latency <= *left) {
				offers = append(offers, newOffer(a, capability, m))
			}
		}
		switch {
		case !known:
			missing = append(missing, id)
			reasons = append(reasons, id+": no agent has this capability")
		case len(offers) == before:
			missing = append(missing, id)
			reasons = append(reasons, id+": no agent is done before the deadline")
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
