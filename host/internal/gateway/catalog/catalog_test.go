package catalog_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/api/auth"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/catalog"
	"skep/spec/mail"
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
			{Swarm: "hive", Name: "desk", Entrypoint: true, Capabilities: []abi.Capability{{ID: "order", Version: "2", Description: "takes orders", InputSchema: []byte(`{}`), Constraints: []byte(`{"max_input_length":9}`)}}},
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

func agent(tenant, id string) auth.Principal {
	return auth.Principal{Tenant: tenant, Role: auth.Agent, ID: id}
}

// Callers are known by their realm: a partner by its name, a stranger by the gateway's and
// its own, also if that is too long for a swarm's name.
func TestCaller(t *testing.T) {
	t.Parallel()
	c := newCatalog(t, newDefinitions(config.Gateway{Name: "a2a", Partners: []config.Partner{{Name: "shop", Tenant: "acme", May: []string{"ask", "tell"}}}}))
	if got := c.Caller(agent("acme", "shop")); got.Realm != "shop" || !got.May.Has(gateway.MayTell) {
		t.Errorf("a partner is %+v", got)
	}
	if got := c.Caller(agent("acme", "lab")); got.Realm != "a2a+lab" || got.May.Has(gateway.MayTell) || !got.May.Has(gateway.MayAsk) {
		t.Errorf("a stranger is %+v", got)
	}
	if got := c.Caller(user("acme").Principal); got.Realm != "" || !got.IsUser() {
		t.Errorf("a user is %+v", got)
	}
	long, other := c.Caller(agent("acme", strings.Repeat("x", 300))), c.Caller(agent("acme", strings.Repeat("x", 301)))
	if mail.CheckSwarmName(long.Realm) != nil || long.Realm == other.Realm || !strings.HasPrefix(long.Realm, "a2a+~") {
		t.Errorf("long names are %q and %q", long.Realm, other.Realm)
	}
}

// What callers have chosen is reached over https at a name only, and with one method
// (G-055, V-U16).
func TestPublicClient(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		c, err := catalog.NewPublicClient(nil, catalog.PublicBounds{Methods: []string{method}, MaxReply: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{"http://push.example/x", "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://169.254.169.254/x", "https://2130706433/x", "https://push.example:8443/x"} {
			if catalog.CheckPublic(url) == nil {
				t.Errorf("%s is taken", url)
			}
			req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if rsp, err := c.Do(req); err == nil {
				rsp.Body.Close()
				t.Errorf("%s %s answered", method, url)
			}
		}
	}
	if catalog.CheckPublic("https://push.example:0/x") == nil {
		t.Error("port 0 is taken")
	}
	if err := catalog.CheckPublic("https://push.example/x?y=z"); err != nil {
		t.Error(err)
	}
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
		Name: "a2a", Admit: []string{"lab", "did:web:*.example.org"}, StrangerTenant: "guests",
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
		"a stranger":                        {c.Caller(agent("guests", "lab")), []string{"hall"}},
		"a stranger by pattern":             {c.Caller(agent("guests", "did:web:a.example.org")), []string{"hall"}},
		"a stranger that is not admitted":   {c.Caller(agent("guests", "mob")), nil},
		"a stranger's name of other tenant": {c.Caller(agent("acme", "lab")), nil},
		"a stranger of another gateway":     {realm("guests", "mcp+lab"), nil},
		"without a credential":              {gateway.Caller{}, nil},
	} {
		if diff := cmp.Diff(test.want, names(c.ExposedAgents(test.caller))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	got := c.ExposedAgents(realm("acme", "shop"))
	want := []gateway.ExposedAgent{
		{Swarm: "hive", Name: "desk", Entrypoint: true, Streams: true, Capabilities: []gateway.Capability{{ID: "order", Version: "2", Description: "takes orders", Input: []byte(`{}`), Constraints: []byte(`{"max_input_length":9}`)}}},
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
	if got := c.ExposedAgents(c.Caller(agent("guests", "lab"))); len(got) > 0 {
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
