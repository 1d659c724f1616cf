package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/swarm"
)

// withAcme adds the tenant acme to the file, and nobody, which has nothing.
func withAcme(h *testHost) {
	h.limits.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{"acme": {}, "nobody": {}})
}

// listedTenants lists tenants in pages of so many: their names, and of each what it stores and of its quotas uses and has left.
func listedTenants(t *testing.T, h *testHost, token string, limit int) (names []string, uses map[string]map[string][2]int64) {
	t.Helper()
	uses = map[string]map[string][2]int64{}
	for after := ""; ; {
		a := h.do(request{path: fmt.Sprintf("/skep/v1/tenants?limit=%d&after=%s", limit, after), token: token})
		var page struct {
			Tenants []struct {
				Tenant string
				Stored struct{ Bytes, Tasks int64 }
				Quota  []struct {
					Name        string
					Used        int64
					Limit, Left *int64
				}
			}
			Next      *string
			SpeaksFor string `json:"speaks_for"`
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK || page.SpeaksFor != "store" || len(page.Tenants) > limit {
			t.Fatalf("as %s after %q: %d %s %v", token, after, a.status, a.body, err)
		}
		for _, one := range page.Tenants {
			names, uses[one.Tenant] = append(names, one.Tenant), map[string][2]int64{"stored": {one.Stored.Bytes, one.Stored.Tasks}}
			for _, q := range one.Quota {
				if q.Limit != nil {
					uses[one.Tenant][q.Name] = [2]int64{q.Used, *q.Left}
				}
			}
		}
		if page.Next == nil {
			return names, uses
		}
		after = *page.Next
	}
}

// Operators see what every tenant of the file or of the store keeps, and of each quota what is used and
// left; admins their own tenant, users none.
func TestTenantList(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries, func(h *testHost) {
		h.limits.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{
			"acme": {Quota: swarm.Quota{Tasks: 5, Storage: 100 << 20, MessagesPerDay: 100, SpendPerDay: swarm.Spend{MicroUSD: 7e6}}}, "quiet": {},
		})
	})
	names, uses := listedTenants(t, h, "default/operator/op", 2)
	for _, limit := range []int{1, 3, 1000} {
		if other, _ := listedTenants(t, h, "default/operator/op", limit); !slices.Equal(other, names) || !slices.Equal(names, []string{"acme", "default", "quiet"}) {
			t.Errorf("an operator sees %v, and %v in pages of %d", names, other, limit)
		}
	}
	acme := uses["acme"]
	if len(acme) != 5 || acme["stored"][0] == 0 || acme["stored"][1] == 0 || acme["tasks"][0]+acme["tasks"][1] != 5 ||
		acme["storage"][0] == 0 || acme["storage"][0]+acme["storage"][1] != 100<<20 || acme["messages_per_day"][0] == 0 || acme["usd_per_day"] != [2]int64{0, 7e6} {
		t.Errorf("acme uses %v", acme)
	}
	if len(uses["default"]) != 1 || uses["quiet"]["stored"] != [2]int64{} {
		t.Errorf("without quotas: %v", uses)
	}
	for token, want := range map[string]string{"acme/admin/ann": "acme", "gone/admin/gil": "gone"} {
		if names, _ := listedTenants(t, h, token, 1); !slices.Equal(names, []string{want}) {
			t.Errorf("%s sees %v", token, names)
		}
	}
	for _, token := range []string{"acme/user/alice", "default/agent/depot"} {
		if a := h.do(request{path: "/skep/v1/tenants", token: token}); a.status != http.StatusUnauthorized || strings.Contains(a.body, "acme") {
			t.Errorf("as %s: %d %s", token, a.status, a.body)
		}
	}
}

// An unknown tenant is refused by each route that takes one, and looks like none that is well; to
// those who may not name one it is as all others.
func TestUnknownTenant(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries, func(h *testHost) { h.limits.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{"quiet": {}}) })
	for _, path := range []string{
		"usage?", "tasks?", "questions?", "dead-letters?", "pulse?limit=1&", "gateways?", "tasks/done-default?", "tasks/done-default/mail?",
		"tasks/done-default/events?", "tasks/done-default/turns?", "tasks/done-default/history?agent=boss&",
	} {
		path = "/skep/v1/" + path + "tenant="
		a := h.do(request{path: path + "nosuch", token: "default/operator/op"})
		if a.status != http.StatusNotFound || !strings.Contains(a.body, "no tenant 'nosuch'") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := h.do(request{path: path + "gone", token: "default/operator/op"}); a.status != http.StatusNotFound || !strings.Contains(a.body, "no tenant 'gone'") {
			t.Errorf("%s: %d %s of an erased tenant", path, a.status, a.body)
		}
		other, unknown := h.do(request{path: path + "acme", token: "default/admin/ada"}), h.do(request{path: path + "nosuch", token: "default/admin/ada"})
		if other.status != http.StatusUnauthorized || unknown.status != other.status || unknown.body != other.body {
			t.Errorf("%s as an admin of another tenant: %d %s and %d %s", path, other.status, other.body, unknown.status, unknown.body)
		}
	}
	const tokens = "/skep/v1/tokens?tenant="
	if a := h.do(request{path: tokens + "nosuch", token: "default/operator/op"}); a.status != http.StatusNotFound || !strings.Contains(a.body, "no tenant 'nosuch'") {
		t.Errorf("tokens: %d %s", a.status, a.body)
	}
	for _, known := range []string{"quiet", "acme", "default"} {
		for _, path := range []string{"/skep/v1/usage?tenant=", tokens} {
			if a := h.do(request{path: path + known, token: "default/operator/op"}); a.status != http.StatusOK {
				t.Errorf("%s%s: %d %s", path, known, a.status, a.body)
			}
		}
	}
}
