package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/registry"
)

// No token speaks for the host's own swarm, and for one of the operator's file
// only the operator makes it, by whichever member of the wish it is named.
func TestPeerTokens(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, func(h *hive) {
		h.opt.Registry = newPhonebook(registry.Entry{Name: "fixed", Fixed: true}, registry.Entry{Name: "met"})
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
		{adminToken, obj{"role": "agent", "id": "k", "peer": "fixed"}, 401, "stands in swarm.toml", "asked for a token of peer fixed"},
		{acmeAdmin, obj{"role": "agent", "id": "fixed"}, 401, "stands in swarm.toml", "asked for a token of peer fixed"},
		{operatorToken, obj{"role": "agent", "id": "fixed"}, 201, `"id"`, ""},
		{adminToken, obj{"role": "agent", "id": "hive", "peer": "met"}, 201, `"id"`, ""},
		{adminToken, obj{"role": "user", "id": "fixed"}, 201, `"id"`, ""},
	} {
		a := g.do(request{method: http.MethodPost, path: "/skep/v1/tokens", token: c.token, body: text(c.wish)})
		if a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%v: %d %s, want %d %q", c.wish, a.status, a.body, c.status, c.want)
		}
		if heard := strings.Join(g.ears.heard(), "\n"); !strings.Contains(heard, c.audited) {
			t.Errorf("%v: the audit lacks %q:\n%s", c.wish, c.audited, heard)
		}
	}
}
