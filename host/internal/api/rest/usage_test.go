package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/swarm"
)

// usageByRole is what each caller gets of the usage of his tenant, of acme's and of all; gone is erased.
var usageByRole = map[string][3]int{
	"default/user/alice":  {401, 401, 401},
	"default/admin/ada":   {200, 401, 401},
	"acme/admin/ann":      {200, 200, 401},
	"gone/admin/gil":      {200, 401, 401},
	"default/operator/op": {200, 200, 200},
	"acme/operator/op":    {200, 200, 200},
	"default/agent/depot": {401, 401, 401},
}

type usageJSON struct {
	Since, Until time.Time
	Tenant       *string
	Usage        []struct {
		Tenant, Agent, At string
		Turns, Failures   int64
		Causes            map[string]int64
	}
	Total  struct{ Turns, Failures int64 }
	Stored *struct{ Bytes, Tasks int64 }
	Quota  []struct {
		Name        string
		Used        int64
		Limit, Left *int64
		SpeaksFor   string `json:"speaks_for"`
	}
	SpeaksFor string `json:"speaks_for"`
}

func readUsage(t *testing.T, h *testHost, path, token string) (u usageJSON) {
	t.Helper()
	a := h.do(request{path: path, token: token})
	if err := json.Unmarshal([]byte(a.body), &u); err != nil || a.status != http.StatusOK || u.SpeaksFor != "store" {
		t.Fatalf("%s: %d %s %v", path, a.status, a.body, err)
	}
	return u
}

// Admins see the usage of their tenant, operators of all tenants, users none; no caller sees what was
// said, and an erased tenant has none.
func TestUsageByRole(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries)
	for caller, statuses := range usageByRole {
		for i, query := range []string{"", "&tenant=acme", "&scope=host"} {
			for _, by := range []string{"tenant", "agent", "model", "minute", "hour", "day"} {
				a := h.do(request{path: "/skep/v1/usage?by=" + by + query, token: caller})
				if a.status != statuses[i] {
					t.Errorf("%s%s as %s: %d %s, want %d", by, query, caller, a.status, a.body, statuses[i])
				}
				wantNoPlanted(t, caller, a.body)
			}
		}
	}
	all := readUsage(t, h, "/skep/v1/usage?scope=host", "default/operator/op")
	if all.Tenant != nil || len(all.Usage) != 2 || all.Stored != nil || len(all.Quota) != 0 {
		t.Errorf("of all tenants: %+v", all)
	}
	for _, g := range all.Usage {
		if g.Tenant == "gone" || g.Turns == 0 || g.Causes["trap"] == 0 || g.Causes["trap"]+g.Causes["host"] != g.Failures {
			t.Errorf("a tenant's: %+v", g)
		}
	}
	for _, tenant := range []string{"acme", "default"} {
		one := readUsage(t, h, "/skep/v1/usage?scope=host&tenant="+tenant, "default/operator/op")
		if one.Tenant == nil || *one.Tenant != tenant || len(one.Usage) != 1 || one.Usage[0].Tenant != tenant {
			t.Errorf("of %s in scope host: %+v", tenant, one)
		}
	}
	gone := readUsage(t, h, "/skep/v1/usage", "gone/admin/gil")
	if *gone.Tenant != "gone" || len(gone.Usage) != 0 || gone.Total.Turns != 0 || gone.Stored.Bytes != 0 {
		t.Errorf("of the erased: %+v", gone)
	}
	if one := readUsage(t, h, "/skep/v1/usage?by=agent&agent=boss", "acme/admin/ann"); len(one.Usage) != 1 || one.Usage[0].Agent != "boss" {
		t.Errorf("of one agent: %+v", one)
	}
	if none := readUsage(t, h, "/skep/v1/usage?until=2020-01-01T00:00:00Z", "acme/admin/ann"); len(none.Usage) != 0 {
		t.Errorf("of long ago: %+v", none)
	}
}

// A minute is in one of two spans that meet, wherever in it their bounds are, and the answer has the
// bounds that were summed.
func TestUsageSpans(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.do(request{method: "POST", path: "/message", body: text(obj{"body": "hello"})})
	minute := time.Now().UTC().Truncate(time.Minute)
	within := url.QueryEscape(minute.Add(30 * time.Second).Format(time.RFC3339))
	before := url.QueryEscape(minute.Add(-time.Hour).Format(time.RFC3339))
	first := readUsage(t, h, "/skep/v1/usage?since="+before+"&until="+within, adminToken)
	second := readUsage(t, h, "/skep/v1/usage?since="+within, adminToken)
	if !first.Until.Equal(second.Since) || !first.Until.Equal(minute) {
		t.Errorf("one ends at %s, the other begins at %s", first.Until, second.Since)
	}
	if n := first.Total.Turns + second.Total.Turns; n != 1 {
		t.Errorf("the turn is counted %d times", n)
	}
}

// A quota is shown with what is used and left of it.
func TestUsageShowsQuota(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) {
		h.limits.Tenants = swarm.NewTenantSet(map[string]swarm.Tenant{"default": {Quota: swarm.Quota{Tasks: 5, Storage: 1 << 20, MessagesPerDay: 100}}})
	})
	h.do(request{method: "POST", path: "/message", body: text(obj{"body": "hello"})})
	u := readUsage(t, h, "/skep/v1/usage", adminToken)
	if len(u.Quota) != 6 || u.Stored.Tasks != 1 {
		t.Fatalf("%+v", u)
	}
	for _, q := range u.Quota {
		switch q.Name {
		case "tasks":
			if q.SpeaksFor != "store" || *q.Limit != 5 || *q.Left != 5-q.Used {
				t.Errorf("%+v", q)
			}
		case "storage", "messages_per_day":
			if q.SpeaksFor != "store" || q.Used == 0 || *q.Left != *q.Limit-q.Used {
				t.Errorf("%+v", q)
			}
		default:
			if q.Limit != nil || q.Left != nil {
				t.Errorf("%+v", q)
			}
		}
	}
}
