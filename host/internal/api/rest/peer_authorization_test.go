package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/api/rest"
	"skep/host/internal/peer/registry"
)

// No token speaks for the host's own swarm. Only the operator makes one for a
// swarm of the file. For a registered swarm, only admins of the tenant that
// registers do, whichever member of the request names it.
func TestPeerTokens(t *testing.T) {
	t.Parallel()
	g := newTokenHost(t, func(h *testHost) {
		h.opt.Registry = newFakeRegistry(registry.Entry{Name: "fixed", Fixed: true}, registry.Entry{Name: "met"},
			registry.Entry{Name: "Fixed", Discovered: true}, registry.Entry{Name: "seen", Discovered: true})
	})
	for _, c := range []struct {
		token   string
		wish    obj
		status  int
		want    string
		audited string
	}{
		{adminToken, obj{"role": "agent", "id": "k", "peer": "hive"}, 400, "another swarm than 'hive'", ""},
		{adminToken, obj{"role": "agent", "id": "hive"}, 400, "another swarm than 'hive'", ""},
		{operatorToken, obj{"role": "agent", "id": "hive"}, 400, "another swarm than 'hive'", ""},
		{adminToken, obj{"role": "agent", "id": "k", "peer": "Hive"}, 400, "another swarm than 'hive'", ""},
		{operatorToken, obj{"role": "agent", "id": "HIVE"}, 400, "another swarm than 'hive'", ""},
		{adminToken, obj{"role": "agent", "id": "Fixed"}, 401, "swarm 'fixed' stands in swarm.toml", "asked for a token of peer Fixed"},
		{acmeAdmin, obj{"role": "agent", "id": "k", "peer": "MET"}, 401, "swarm 'met' is registered", "asked for a token of peer MET"},
		{acmeAdmin, obj{"role": "agent", "id": "k", "peer": "Seen"}, 201, `"id"`, ""},
		{adminToken, obj{"role": "agent", "id": "k", "peer": "fixed"}, 401, "stands in swarm.toml", "asked for a token of peer fixed"},
		{acmeAdmin, obj{"role": "agent", "id": "fixed"}, 401, "stands in swarm.toml", "asked for a token of peer fixed"},
		{acmeAdmin, obj{"role": "agent", "id": "k", "peer": "met"}, 401, "is registered", "asked for a token of peer met"},
		{acmeAdmin, obj{"role": "agent", "id": "met"}, 401, "tenant 'default'", "asked for a token of peer met"},
		{acmeAdmin, obj{"role": "agent", "id": "met", "peer": "unmet"}, 201, `"id"`, ""},
		{operatorToken, obj{"role": "agent", "id": "met", "tenant": "acme"}, 201, `"id"`, ""},
		{operatorToken, obj{"role": "agent", "id": "fixed"}, 201, `"id"`, ""},
		{adminToken, obj{"role": "agent", "id": "hive", "peer": "met"}, 201, `"id"`, ""},
		{adminToken, obj{"role": "user", "id": "fixed"}, 201, `"id"`, ""},
	} {
		a := g.do(request{method: http.MethodPost, path: "/skep/v1/tokens", token: c.token, body: text(c.wish)})
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d %s, want %d %q", c.wish, a.status, a.body, c.status, c.want)
		}
		if heard := strings.Join(g.ears.recorded(), "\n"); !strings.Contains(heard, c.audited) {
			t.Errorf("%v: the audit lacks %q:\n%s", c.wish, c.audited, heard)
		}
	}
}

// A token that was made before its swarm was known opens nothing for it once it is,
// unless its maker might have it made now. Keys of the operator's file do.
func TestPeerTokensOnUse(t *testing.T) {
	t.Parallel()
	var book *fakeRegistry
	g := newTokenHost(t, func(h *testHost) {
		book = newFakeRegistry()
		h.opt.Registry = book
	})
	tokens := map[string]string{"the file's": agentToken}
	for name, maker := range map[string]string{"an operator's": operatorToken, "an admin's": adminToken, "another tenant's": acmeAdmin} {
		a, m := g.make(maker, obj{"role": "agent", "id": "depot"})
		if a.status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		tokens[name] = m.Token
	}
	everybody := []string{"the file's", "an operator's", "an admin's", "another tenant's"}
	for _, c := range []struct {
		name    string
		known   []registry.Entry
		open    []string
		refusal string
	}{
		{"unknown", nil, everybody, ""},
		{"of the file", []registry.Entry{{Name: "depot", Fixed: true}}, everybody[:2], "stands in swarm.toml"},
		{"looks like one of the file", []registry.Entry{{Name: "Depot", Fixed: true}}, everybody[:2], "stands in swarm.toml"},
		{"registered", []registry.Entry{{Name: "depot"}}, everybody[:3], "is registered"},
		{"looks like a discovered one", []registry.Entry{{Name: "Depot", Discovered: true}}, everybody, ""},
	} {
		book.add(c.known...)
		for _, name := range everybody {
			g.ears.recorded()
			a := g.do(request{method: http.MethodPost, path: "/interswarm/forward", token: tokens[name], body: wrapper("target_swarm", "nobody")})
			heard := strings.Join(g.ears.recorded(), "\n")
			if slices.Contains(c.open, name) {
				if a.status != http.StatusBadRequest || !strings.Contains(a.body, "target_swarm") {
					t.Errorf("%s, %s token: %d %s", c.name, name, a.status, a.body)
				}
				continue
			}
			if a.status != http.StatusUnauthorized || !strings.Contains(a.body, c.refusal) || strings.Contains(a.body, "acme") {
				t.Errorf("%s, %s token: %d %s, want 401 %q", c.name, name, a.status, a.body, c.refusal)
			}
			if !strings.Contains(heard, "used a token of peer depot that was made by an admin of tenant ") || !strings.Contains(heard, c.refusal) {
				t.Errorf("%s, %s token: the audit has %q", c.name, name, heard)
			}
		}
	}
}

// A peer answers the tasks of all tenants with a key that the operator has given it, and
// of a known swarm only; with one that an admin of the host's tenant has made, that
// tenant's own. One tenant's definition without mail of other swarms stops no answer to
// another's.
func TestAnswersAnyTenant(t *testing.T) {
	t.Parallel()
	book := newFakeRegistry(registry.Entry{Name: "depot"})
	g := newTokenHost(t, func(h *testHost) { h.opt.Registry = book })
	tokens := map[string]string{"the file's": agentToken}
	for name, maker := range map[string]string{"an operator's": operatorToken, "an admin's": adminToken} {
		a, m := g.make(maker, obj{"role": "agent", "id": "depot"})
		if a.status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		tokens[name] = m.Token
	}
	rt := newDeadLetterRuntime()
	h := rest.New(rt, g.known, g.opt)
	send := func(name, path string) answer {
		return serve(t, h, request{method: http.MethodPost, path: path, token: tokens[name], body: wrapper()})
	}
	for name, want := range map[string]bool{"the file's": true, "an operator's": true, "an admin's": false} {
		*rt.got = nil
		if a := send(name, "/interswarm/back"); a.status != http.StatusOK || len(*rt.got) != 1 || (*rt.got)[0].AnyTenant != want {
			t.Errorf("%s key: %d %s, %+v", name, a.status, a.body, *rt.got)
		}
	}
	for name, known := range map[string][]registry.Entry{
		"of no known swarm":                               nil,
		"of a swarm that is not known any more":           {{Name: "other", Fixed: true}},
		"of one that others have listed with a like name": {{Name: "Depot", Discovered: true}},
	} {
		g.opt.Registry = newFakeRegistry(known...)
		stranger := rest.New(rt, g.known, g.opt)
		for key, token := range tokens {
			*rt.got = nil
			a := serve(t, stranger, request{method: http.MethodPost, path: "/interswarm/back", token: token, body: wrapper()})
			if a.status != http.StatusOK || len(*rt.got) != 1 || (*rt.got)[0].AnyTenant {
				t.Errorf("%s, %s key: %d %s, %+v", name, key, a.status, a.body, *rt.got)
			}
		}
	}
	rt.def.Interswarm = false
	for name, status := range map[string]int{"the file's": http.StatusOK, "an admin's": http.StatusServiceUnavailable} {
		if a := send(name, "/interswarm/back"); a.status != status {
			t.Errorf("%s key without mail of other swarms: %d %s", name, a.status, a.body)
		}
		if a := send(name, "/interswarm/forward"); a.status != http.StatusServiceUnavailable {
			t.Errorf("%s key, a new task: %d %s", name, a.status, a.body)
		}
	}
}
