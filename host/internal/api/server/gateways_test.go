package server

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/api/rest"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/host/internal/swarm"
)

// shownGateway is a gateway whose partner lab is down.
type shownGateway struct {
	gateway.Gateway
	name string
}

func (g shownGateway) Name() string { return g.name }

func (g shownGateway) Health() gateway.Health {
	return gateway.Health{OK: g.name == "a2a", Detail: "of " + g.name, Connections: 1, Sessions: 2, Streams: 3}
}

func (g shownGateway) Discover(ctx context.Context, p gateway.Partner) ([]gateway.ForeignAgent, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("no deadline")
	}
	if p.Name == "lab" {
		return nil, errors.New("it answers 502")
	}
	return []gateway.ForeignAgent{{Name: "orders"}, {Name: "returns"}}, nil
}

// fileDefinitions expose one agent of each tenant through each gateway.
type fileDefinitions struct{ cfg *config.Config }

func (d fileDefinitions) Config() *config.Config { return d.cfg }

func (d fileDefinitions) Exposed(tenant, gateway string) []definition.ExposedAgent {
	return []definition.ExposedAgent{{Name: tenant + "-" + gateway, Entrypoint: true, Capabilities: []abi.Capability{{ID: "order"}}}}
}

func newGateways(t *testing.T) gateways {
	t.Helper()
	d := fileDefinitions{&config.Config{Gateways: []config.Gateway{{Name: "mcp"}, {Name: "a2a", Partners: []config.Partner{
		{Name: "shop", Tenant: "default", May: []string{"ask"}}, {Name: "lab", Tenant: "acme", IDs: []string{"*"}},
	}}}}}
	var gs gateways
	for _, name := range []string{"mcp", "a2a"} {
		c := catalog.New(catalog.Options{Gateway: name, Definitions: d})
		t.Cleanup(c.Close)
		gs = append(gs, Gateway{shownGateway{name: name}, c})
	}
	return gs
}

// Gateways are shown by name, with the agents and partners of one tenant, or all partners.
func TestGatewaysAreShown(t *testing.T) {
	t.Parallel()
	gs := newGateways(t)
	agent := func(name string) []rest.GatewayAgent {
		return []rest.GatewayAgent{{Name: name, Entrypoint: true, Capabilities: []string{"order"}}}
	}
	lab := rest.GatewayPartner{Name: "lab", Tenant: "acme", IDs: []string{"*"}, Agents: []string{}, May: []string{}}
	shop := rest.GatewayPartner{Name: "shop", Tenant: "default", IDs: []string{}, Agents: []string{}, May: []string{"ask"}}
	want := []rest.Gateway{
		{Name: "a2a", Healthy: true, Detail: "of a2a", Connections: 1, Sessions: 2, Streams: 3, Agents: agent("acme-a2a"), Partners: []rest.GatewayPartner{lab}},
		{Name: "mcp", Detail: "of mcp", Connections: 1, Sessions: 2, Streams: 3, Agents: agent("acme-mcp"), Partners: []rest.GatewayPartner{}},
	}
	if diff := cmp.Diff(want, gs.List("acme", false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]rest.GatewayPartner{lab, shop}, gs.List("default", true)[0].Partners); diff != "" {
		t.Error(diff)
	}
	if list := gateways(nil).List("default", true); list != nil {
		t.Errorf("of none: %+v", list)
	}
}

// A ping lists a partner's agents, or says why not; other tenants' partners are unknown.
func TestPingPartner(t *testing.T) {
	t.Parallel()
	gs := newGateways(t)
	p, err := gs.Ping(t.Context(), "default", false, "shop")
	if err != nil || p.Err != nil || p.Gateway != "a2a" || !cmp.Equal([]string{"orders", "returns"}, p.Agents) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := gs.Ping(t.Context(), "default", true, "lab"); err != nil || p.Err == nil {
		t.Errorf("%+v, %v", p, err)
	}
	for _, name := range []string{"lab", "none"} {
		if _, err := gs.Ping(t.Context(), "default", false, name); !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
