package catalog_test

import (
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
)

// definitions are what each tenant exposes through a2a, and a configuration.
type definitions struct {
	cfg    atomic.Pointer[config.Config]
	agents map[string][]definition.ExposedAgent
}

func (d *definitions) Config() *config.Config { return d.cfg.Load() }

func (d *definitions) Exposed(tenant, gateway string) []definition.ExposedAgent {
	if gateway != "a2a" {
		return nil
	}
	return d.agents[tenant]
}

// newDefinitions has a tenant acme with a desk and a store, and a tenant guests with a hall.
func newDefinitions(gateways ...config.Gateway) *definitions {
	d := &definitions{agents: map[string][]definition.ExposedAgent{
		"acme": {
			{Swarm: "hive", Name: "desk", Entrypoint: true, Capabilities: []abi.Capability{{ID: "order", Version: "2", Description: "takes orders", InputSchema: []byte(`{}`)}}},
			{Swarm: "hive", Name: "store", Description: "keeps", Version: "1"},
		},
		"guests": {{Swarm: "hive", Name: "hall"}},
	}}
	d.set(gateways...)
	return d
}

func (d *definitions) set(gateways ...config.Gateway) {
	d.cfg.Store(&config.Config{Gateways: gateways})
}

func newCatalog(t *testing.T, d *definitions, change ...func(*catalog.Options)) *catalog.Catalog {
	t.Helper()
	opt := catalog.Options{Gateway: "a2a", Definitions: d}
	for _, c := range change {
		c(&opt)
	}
	c := catalog.New(opt)
	t.Cleanup(c.Close)
	return c
}

func user(tenant string) gateway.Caller {
	return gateway.Caller{Principal: auth.Principal{Tenant: tenant, Role: auth.User, ID: "ann"}}
}

func realm(tenant, name string) gateway.Caller {
	return gateway.Caller{Principal: auth.Principal{Tenant: tenant, Role: auth.Agent, ID: name}, Realm: name}
}

func names(list []gateway.ExposedAgent) (names []string) {
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

// Users see the entrypoints of their tenant, partners what their table leaves of their
// tenant's exposed agents, strangers what the strangers' tenant exposes, and no caller the
// agents of another tenant.
func TestExposedAgents(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, newDefinitions(config.Gateway{
		Name: "a2a", Admit: []string{"*"}, StrangerTenant: "guests",
		Partners: []config.Partner{{Name: "shop", Tenant: "acme"}, {Name: "clerk", Tenant: "acme", Agents: []string{"store", "vault"}}},
	}))
	for name, test := range map[string]struct {
		caller gateway.Caller
		want   []string
	}{
		"a user":                            {user("acme"), []string{"desk"}},
		"a user of a tenant that has none":  {user("guests"), nil},
		"a user of no tenant":               {user("nobody"), nil},
		"a partner":                         {realm("acme", "shop"), []string{"desk", "store"}},
		"a partner that sees less":          {realm("acme", "clerk"), []string{"store"}},
		"a partner's name of other tenant":  {realm("guests", "shop"), nil},
		"a peer":                            {realm("acme", "depot"), nil},
		"an agent without a realm":          {realm("acme", ""), nil},
		"a stranger":                        {realm("guests", "a2a+lab"), []string{"hall"}},
		"a stranger's name of other tenant": {realm("acme", "a2a+lab"), nil},
		"a stranger of another gateway":     {realm("guests", "mcp+lab"), nil},
	} {
		if diff := cmp.Diff(test.want, names(c.ExposedAgents(test.caller))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	got := c.ExposedAgents(realm("acme", "shop"))
	want := []gateway.ExposedAgent{
		{Swarm: "hive", Name: "desk", Entrypoint: true, Streams: true, Capabilities: []gateway.Capability{{ID: "order", Version: "2", Description: "takes orders", Input: []byte(`{}`)}}},
		{Swarm: "hive", Name: "store", Description: "keeps", Version: "1", Streams: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A reload changes who may see what, at the next question.
func TestReload(t *testing.T) {
	t.Parallel()
	d := newDefinitions(config.Gateway{Name: "a2a", Partners: []config.Partner{{Name: "shop", Tenant: "acme", Agents: []string{"desk"}}}})
	c := newCatalog(t, d)
	if got := names(c.ExposedAgents(realm("acme", "shop"))); !cmp.Equal([]string{"desk"}, got) {
		t.Fatal(got)
	}
	if got := c.ExposedAgents(realm("guests", "a2a+lab")); len(got) > 0 {
		t.Errorf("nobody is admitted, and a stranger sees %v", got)
	}
	d.set(config.Gateway{Name: "a2a", Partners: []config.Partner{{Name: "shop", Tenant: "acme", Agents: []string{"store"}}, {Name: "lab", Tenant: "acme"}}})
	if got := names(c.ExposedAgents(realm("acme", "shop"))); !cmp.Equal([]string{"store"}, got) {
		t.Error(got)
	}
	if list := c.Partners(); len(list) != 2 || list[0].Name != "lab" || list[1].Name != "shop" {
		t.Errorf("partners: %+v", list)
	}
	d.set()
	if _, ok := c.Partner("shop"); ok || c.Partners() != nil || len(c.ExposedAgents(realm("acme", "shop"))) > 0 {
		t.Error("a partner that the file has no more is there")
	}
	if _, ok := c.Settings(); ok {
		t.Error("the table is gone, and has settings")
	}
}
