package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"skep/host/internal/api/rest"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
)

// Gateway is a gateway that runs, with what it shows and whom it calls.
type Gateway struct {
	gateway.Gateway
	Catalog *catalog.Catalog
}

// gateways adapts gateways to [rest.Gateways].
type gateways []Gateway

// pingTime is how long a partner has to list its agents.
const pingTime = 10 * time.Second

// List implements [rest.Gateways].
func (gs gateways) List(tenant string, all bool) (list []rest.Gateway) {
	for _, g := range gs {
		health := g.Health()
		shown := rest.Gateway{
			Name: g.Name(), Healthy: health.OK, Detail: health.Detail, Connections: health.Connections, Sessions: health.Sessions, Streams: health.Streams,
			Agents: []rest.GatewayAgent{}, Partners: []rest.GatewayPartner{},
		}
		for _, a := range g.Catalog.Exposed(tenant) {
			shown.Agents = append(shown.Agents, shownAgent(a))
		}
		for _, p := range g.Catalog.Partners() {
			if all || p.Tenant == tenant {
				shown.Partners = append(shown.Partners, shownPartner(p))
			}
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b rest.Gateway) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func shownAgent(a gateway.ExposedAgent) rest.GatewayAgent {
	shown := rest.GatewayAgent{Name: a.Name, Description: a.Description, Version: a.Version, Entrypoint: a.Entrypoint, Capabilities: []string{}}
	for _, c := range a.Capabilities {
		shown.Capabilities = append(shown.Capabilities, c.ID)
	}
	return shown
}

func shownPartner(p gateway.Partner) rest.GatewayPartner {
	shown := rest.GatewayPartner{Name: p.Name, Tenant: p.Tenant, URL: p.URL, IDs: append([]string{}, p.IDs...), Agents: append([]string{}, p.Agents...), May: []string{}}
	for _, right := range p.May {
		shown.May = append(shown.May, string(right))
	}
	return shown
}

// Ping implements [rest.Gateways].
func (gs gateways) Ping(ctx context.Context, tenant string, all bool, name string) (rest.PartnerPing, error) {
	for _, g := range gs {
		p, known := g.Catalog.Partner(name)
		if !known || !all && p.Tenant != tenant {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		start := time.Now()
		agents, err := g.Discover(ctx, p)
		found := rest.PartnerPing{Partner: name, Gateway: g.Name(), Latency: time.Since(start), Err: err}
		for _, a := range agents {
			found.Agents = append(found.Agents, a.Name)
		}
		return found, nil
	}
	return rest.PartnerPing{}, rest.UnknownPartner(name)
}
