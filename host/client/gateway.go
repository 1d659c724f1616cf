package client

import (
	"context"
	"net/http"
	"net/url"
)

// Gateway is a protocol besides MAIL through which a host's agents are reached.
type Gateway struct {
	Name    string `json:"name"`
	Healthy bool   `json:"healthy"`
	// Detail is why it is not healthy, or what is to be known.
	Detail string `json:"detail"`
	// Connections, Sessions and Streams are open now, for all tenants.
	Connections int `json:"connections"`
	Sessions    int `json:"sessions"`
	Streams     int `json:"streams"`
	// Agents are those that a tenant exposes, Partners who may write besides users.
	Agents   []GatewayAgent   `json:"agents"`
	Partners []GatewayPartner `json:"partners"`
}

// GatewayAgent is an exposed agent.
type GatewayAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	// Entrypoint is set for an agent that users may write to.
	Entrypoint   bool     `json:"entrypoint"`
	Capabilities []string `json:"capabilities"`
}

// GatewayPartner is another party that a gateway knows.
type GatewayPartner struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	// URL is where it is called, empty for one that is not.
	URL string `json:"url"`
	// IDs are patterns of its agents' ids, Agents what it may see, all when empty.
	IDs    []string `json:"ids"`
	Agents []string `json:"agents"`
	May    []string `json:"may"`
}

const gatewaysPath = "/skep/v1/gateways"

// Gateways lists the gateways that run, with the agents that the caller's tenant exposes
// and its partners. An operator sees the partners of all tenants, or names one tenant. It
// takes an admin.
func (c *Client) Gateways(ctx context.Context, tenant string) ([]Gateway, error) {
	var page struct {
		Gateways []Gateway `json:"gateways"`
	}
	_, err := c.do(ctx, call{method: http.MethodGet, path: gatewaysPath + ofTenant(tenant)}, &page)
	return page.Gateways, err
}

// Gateway returns one gateway, as [Client.Gateways] has it. It takes an admin.
func (c *Client) Gateway(ctx context.Context, name, tenant string) (g Gateway, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: gatewaysPath + "/" + url.PathEscape(name) + ofTenant(tenant)}, &g)
	return g, err
}

// PartnerPing is what a partner came to when it was asked for its agents.
type PartnerPing struct {
	Partner string `json:"partner"`
	Gateway string `json:"gateway"`
	Active  bool   `json:"active"`
	// Latency is the answer's, in seconds; nil without one.
	Latency *float64 `json:"latency"`
	Agents  []string `json:"agents"`
	// Error is why it is not active, else empty.
	Error string `json:"error"`
}

// PingPartner has the host ask a partner of a gateway which agents it has. That it does
// not answer is no error. It takes an admin.
func (c *Client) PingPartner(ctx context.Context, name string) (p PartnerPing, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/skep/v1/partners/" + url.PathEscape(name) + "/ping"}, &p)
	return p, err
}

// ofTenant is the query for one tenant, empty for none.
func ofTenant(tenant string) string {
	if tenant == "" {
		return ""
	}
	return "?" + url.Values{"tenant": {tenant}}.Encode()
}
