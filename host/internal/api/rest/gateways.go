package rest

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// Gateways are the gateways of the host.
type Gateways interface {
	// List lists them by name, each with the agents that a tenant exposes and its
	// partners, or the partners of all tenants.
	List(tenant string, all bool) []Gateway
	// Ping asks a partner of a tenant, or of any, which agents it has. It returns a
	// [swarm.ErrNotFound] for a partner that there is not; one that does not answer is
	// no error.
	Ping(ctx context.Context, tenant string, all bool, partner string) (PartnerPing, error)
}

// Gateway is a gateway as operators see it.
type Gateway struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	// Detail is why it is not healthy, or what is to be known.
	Detail string `json:"detail"`
	// Connections, Sessions and Streams are open now, for all tenants.
	Connections int              `json:"connections"`
	Sessions    int              `json:"sessions"`
	Streams     int              `json:"streams"`
	Agents      []GatewayAgent   `json:"agents"`
	Partners    []GatewayPartner `json:"partners"`
}

// GatewayAgent is an exposed agent.
type GatewayAgent struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Version      string   `json:"version"`
	Entrypoint   bool     `json:"entrypoint"`
	Capabilities []string `json:"capabilities"`
}

// GatewayPartner is a partner of the operator's file.
type GatewayPartner struct {
	Name   string   `json:"name"`
	Tenant string   `json:"tenant"`
	URL    string   `json:"url"`
	IDs    []string `json:"ids"`
	Agents []string `json:"agents"`
	May    []string `json:"may"`
}

// PartnerPing is what a partner answered.
type PartnerPing struct {
	Partner string
	Gateway string
	// Latency is the time of the answer, Agents are the names of its agents.
	Latency time.Duration
	Agents  []string
	// Err is why there was no good answer.
	Err error
}

// noGateways is a host without gateways.
type noGateways struct{}

func (noGateways) List(string, bool) []Gateway { return nil }

func (noGateways) Ping(_ context.Context, _ string, _ bool, partner string) (PartnerPing, error) {
	return PartnerPing{}, UnknownPartner(partner)
}

// UnknownPartner refuses a partner that a caller does not have.
func UnknownPartner(name string) error {
	return &swarm.Refusal{Kind: swarm.ErrNotFound, Text: fmt.Sprintf("there is no partner '%s'; add [gateways.NAME.partners.%s] to swarm.toml", truncate(name), truncate(name))}
}

// visibleGateways lists the gateways as the caller may see them: an operator who names no
// tenant sees the partners of all.
func (c *call) visibleGateways() ([]Gateway, error) {
	tenant, err := c.requestedTenant()
	if err != nil {
		return nil, err
	}
	named, _ := c.param("tenant")
	list := c.h.opt.Gateways.List(tenant, c.w.who.Role == auth.Operator && named == "")
	return append([]Gateway{}, list...), nil
}

// listGateways is GET /skep/v1/gateways.
func (c *call) listGateways() error {
	list, err := c.visibleGateways()
	if err != nil {
		return err
	}
	return c.reply(struct {
		Gateways []Gateway `json:"gateways"`
	}{list})
}

// showGateway is GET /skep/v1/gateways/{name}.
func (c *call) showGateway() error {
	list, err := c.visibleGateways()
	if err != nil {
		return err
	}
	name := c.r.PathValue("name")
	for _, g := range list {
		if g.Name == name {
			return c.reply(g)
		}
	}
	return &swarm.Refusal{Kind: swarm.ErrNotFound, Text: fmt.Sprintf("there is no gateway '%s'; add [gateways.%s] to swarm.toml and start the host again", truncate(name), truncate(name))}
}

// pingPartner is POST /skep/v1/partners/{name}/ping. Nothing changes, so it is not
// audited.
func (c *call) pingPartner() error {
	tenant, err := c.requestedTenant()
	if err != nil {
		return err
	}
	named, _ := c.param("tenant")
	p, err := c.h.opt.Gateways.Ping(c.ctx(), tenant, c.w.who.Role == auth.Operator && named == "", c.r.PathValue("name"))
	if err != nil {
		return err
	}
	var latency *float64
	var reason *string
	if seconds := p.Latency.Seconds(); p.Err == nil {
		latency = &seconds
	} else {
		reason = textOrNull(p.Err.Error())
	}
	return c.reply(struct {
		Partner string   `json:"partner"`
		Gateway string   `json:"gateway"`
		Active  bool     `json:"active"`
		Latency *float64 `json:"latency"`
		Agents  []string `json:"agents"`
		Error   *string  `json:"error"`
	}{p.Partner, p.Gateway, p.Err == nil, latency, append([]string{}, p.Agents...), reason})
}
