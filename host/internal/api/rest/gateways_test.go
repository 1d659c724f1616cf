package rest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
)

// twoTenants is a gateway with a partner in each of two tenants.
type twoTenants struct{}

func (twoTenants) List(tenant string, all bool) []rest.Gateway {
	g := rest.Gateway{
		Name: "a2a", Healthy: true, Sessions: 3, Agents: []rest.GatewayAgent{{Name: "desk-" + tenant, Capabilities: []string{}}},
		Partners: []rest.GatewayPartner{
			{Name: "shop", Tenant: "default", IDs: []string{}, Agents: []string{}, May: []string{"ask"}},
			{Name: "lab", Tenant: "acme", IDs: []string{}, Agents: []string{}, May: []string{}},
		},
	}
	g.Partners = slices.DeleteFunc(g.Partners, func(p rest.GatewayPartner) bool { return !all && p.Tenant != tenant })
	return []rest.Gateway{g}
}

func (t twoTenants) Ping(_ context.Context, tenant string, all bool, name string) (rest.PartnerPing, error) {
	for _, p := range t.List(tenant, all)[0].Partners {
		switch {
		case p.Name != name:
		case name == "lab":
			return rest.PartnerPing{Partner: name, Gateway: "a2a", Latency: time.Second, Err: errors.New("it answers 502")}, nil
		default:
			return rest.PartnerPing{Partner: name, Gateway: "a2a", Latency: time.Second, Agents: []string{"orders"}}, nil
		}
	}
	return rest.PartnerPing{}, rest.UnknownPartner(name)
}

const acmeAdminToken = "acme-admin-token-01"

// Admins see what their tenant exposes, and its partners; an operator sees the partners of
// all tenants, or of one that he names (G-059).
func TestGateways(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) {
		h.opt.Gateways = twoTenants{}
		own := newKeys(t)
		acme, err := auth.NewKeys([]auth.Key{auth.NewKey(auth.Principal{Tenant: "acme", Role: auth.Admin, ID: "eve"}, acmeAdminToken)})
		if err != nil {
			t.Fatal(err)
		}
		h.known = auth.Chain{own, acme}
	}, withAcme)
	for name, c := range map[string]struct{ token, query, agent, partners string }{
		"an admin":                       {adminToken, "", "desk-default", "shop"},
		"another tenant's admin":         {acmeAdminToken, "", "desk-acme", "lab"},
		"an operator":                    {operatorToken, "", "desk-default", "shop lab"},
		"an operator who names a tenant": {operatorToken, "?tenant=acme", "desk-acme", "lab"},
	} {
		var page struct{ Gateways []rest.Gateway }
		h.do(request{path: "/skep/v1/gateways" + c.query, token: c.token}).json(t, &page)
		var one rest.Gateway
		h.do(request{path: "/skep/v1/gateways/a2a" + c.query, token: c.token}).json(t, &one)
		if len(page.Gateways) != 1 {
			t.Fatalf("%s: %+v", name, page)
		}
		for _, g := range []rest.Gateway{page.Gateways[0], one} {
			partners := ""
			for _, p := range g.Partners {
				partners += " " + p.Name
			}
			if g.Name != "a2a" || g.Sessions != 3 || len(g.Agents) != 1 || g.Agents[0].Name != c.agent || partners != " "+c.partners {
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
	if a := h.do(request{path: "/skep/v1/gateways?tenant=acme", token: adminToken}); a.status != http.StatusForbidden && a.status != http.StatusUnauthorized {
		t.Errorf("an admin who names another tenant: %d %s", a.status, a.body)
	}
}

// A partner that does not answer is a result, one of another tenant is not there.
func TestPingPartner(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Gateways = twoTenants{} })
	for path, want := range map[string]struct {
		token  string
		status int
		body   string
	}{
		"/skep/v1/partners/shop/ping": {adminToken, 200, `{"partner":"shop","gateway":"a2a","active":true,"latency":1,"agents":["orders"],"error":null}`},
		"/skep/v1/partners/lab/ping":  {adminToken, 404, ""},
		"/skep/v1/partners/lab/ping?": {operatorToken, 200, `{"partner":"lab","gateway":"a2a","active":false,"latency":null,"agents":[],"error":"it answers 502"}`},
	} {
		a := h.do(request{method: http.MethodPost, path: path, token: want.token})
		if a.status != want.status || want.body != "" && a.body != want.body && a.body != want.body+"\n" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// A host without gateways lists none.
func TestNoGateways(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	if a := h.do(request{path: "/skep/v1/gateways", token: adminToken}); a.status != 200 || a.body != `{"gateways":[]}` && a.body != `{"gateways":[]}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, q := range []request{{path: "/skep/v1/gateways/mcp"}, {method: http.MethodPost, path: "/skep/v1/partners/shop/ping"}} {
		q.token = adminToken
		if a := h.do(q); a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", q.path, a.status, a.body)
		}
	}
}
