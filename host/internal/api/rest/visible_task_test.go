package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// planted are texts that only the owner of a task may read.
func planted(owner string, n int) string { return fmt.Sprintf("planted-%s-%d-text", owner, n) }

// plantedTexts is how many texts each owner's task has.
const plantedTexts = 10

// watchedHost is a host of the tenants default, acme and gone, which was erased. In each, alice
// has a completed task done-TENANT, a paused one paused-TENANT, and bob of default has bobs.
func watchedHost(t *testing.T, entries *[]audit.Entry, change ...func(*testHost)) *testHost {
	h := newTestHost(t, append(change, func(h *testHost) {
		h.known = byRole{}
		for _, tenant := range []string{"acme", "gone"} {
			other := h.def
			other.Tenant = tenant
			h.also = append(h.also, other)
		}
		h.opt.Audit, h.opt.Debug = recordingAudit{entries}, true
	})...)
	for _, owner := range []string{"default/user/alice", "acme/user/alice", "gone/user/alice", "default/user/bob"} {
		tenant, id := strings.Split(owner, "/")[0], strings.Split(owner, "/")[2]
		name := tenant
		if id == "bob" {
			name = "bob"
		}
		p := func(n int) string { return planted(name, n) }
		h.do(request{method: "POST", path: "/message", token: owner, body: text(obj{"task_id": "done-" + name, "subject": p(0), "body": calls(
			"emit", obj{"kind": "progress", "text": p(1)}, "emit", obj{"kind": "note", "text": p(2)}, "mark", obj{},
			"send_request", obj{"target": "math", "subject": p(3), "body": p(4)},
		)})})
		h.do(request{method: "POST", path: "/message", token: owner, body: text(obj{"task_id": "done-" + name, "subject": p(5), "body": calls("trap", obj{"why": p(6)})})})
		h.do(request{method: "POST", path: "/message", token: owner, body: text(obj{"task_id": "paused-" + name, "subject": p(7), "body": calls("ask", []string{"confirm"}, "x", obj{"y": p(8)})})})
		h.do(request{method: "POST", path: "/message", token: owner, body: text(obj{"task_id": "last-" + name, "subject": "s", "body": p(9)})})
	}
	if err := h.rt.EraseTenant(t.Context(), "gone", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return h
}

// whose are the tasks of the table: the owner's key in the query, and the name in the ids.
var whose = []struct{ tenant, instance, name string }{
	{"default", "user:alice", "default"}, {"default", "user:bob", "bob"}, {"acme", "user:alice", "acme"}, {"gone", "user:alice", "gone"},
}

// visibility is what each caller gets of whose tasks.
var visibility = map[string][]int{
	"default/user/alice":  {200, 401, 401, 401},
	"default/user/bob":    {401, 200, 401, 401},
	"acme/user/alice":     {401, 401, 200, 401},
	"gone/user/alice":     {401, 401, 401, 404},
	"default/admin/ada":   {200, 200, 401, 401},
	"acme/admin/ann":      {401, 401, 200, 401},
	"gone/admin/gil":      {401, 401, 401, 404},
	"default/operator/op": {200, 200, 200, 404},
	"acme/operator/op":    {200, 200, 200, 404},
	"default/agent/depot": {401, 401, 401, 401},
	keyless:               {401, 401, 401, 401},
}

// keyless is a caller without a key.
const keyless = "-"

// shapeRoutes show the shape of each task in sight, ownRoutes, which are MAIL's, the caller's own
// tasks only, and lookRoutes the content of a task by a look.
var (
	shapeRoutes = []string{"GET /skep/v1/tasks/{task_id}", "GET /skep/v1/tasks/{task_id}/mail", "GET /skep/v1/tasks/{task_id}/turns"}
	ownRoutes   = []string{"GET /tasks/{task_id}", "GET /task", "GET /ui/task/{task_id}", "GET /ui/task-summary/{task_id}"}
	lookRoutes  = []string{"GET /skep/v1/tasks/{task_id}/events", "GET /skep/v1/tasks/{task_id}/history"}
)

// taskPath is the path of a route for a task, with the beginning of a query.
func taskPath(route, task string) string {
	_, path, _ := strings.Cut(route, " ")
	switch path = strings.ReplaceAll(path, "{task_id}", task); {
	case path == "/task":
		return path + "?task_id=" + task + "&"
	case strings.HasSuffix(path, "/history"):
		return path + "?agent=boss&"
	}
	return path + "?"
}

// TestTaskRoutesHaveRows: each route of one task is in a table of roles: of TestTasksByRole,
// TestCancelByRole or TestLookByRole.
func TestTaskRoutesHaveRows(t *testing.T) {
	t.Parallel()
	rows := slices.Concat(shapeRoutes, ownRoutes, lookRoutes, []string{"POST /skep/v1/tasks/{task_id}/cancel", "POST /skep/v1/tasks/{task_id}/look"})
	var routes []string
	for _, op := range document(t).Operations() {
		if route := op.String(); strings.Contains(route, "{task_id}") || route == "GET /task" {
			routes = append(routes, route)
		}
	}
	slices.Sort(rows)
	slices.Sort(routes)
	if !slices.Equal(routes, rows) {
		t.Errorf("the routes of a task are\n%q\nand those of the tables of roles\n%q", routes, rows)
	}
}

// Each caller gets the shape of the tasks that are in sight, and nothing that was said in those
// of others: design.md's rule of shape and content.
func TestTasksByRole(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries)
	for caller, statuses := range visibility {
		for i, of := range whose {
			own := strings.HasPrefix(caller, of.tenant+"/") && strings.HasSuffix(caller, "/"+strings.TrimPrefix(of.instance, "user:")) && strings.Contains(caller, "/user/")
			named := "tenant=" + of.tenant + "&instance=" + of.instance
			check := func(path string, want int) {
				t.Helper()
				a := h.do(request{path: path, token: caller})
				if a.status != want {
					t.Errorf("%s of %s as %s: %d %s, want %d", path, of.name, caller, a.status, a.body, want)
				}
				if !own {
					wantNoPlanted(t, caller+" "+path, a.body)
				}
			}
			for _, route := range shapeRoutes {
				for _, task := range []string{"done-", "paused-", "last-"} {
					check(taskPath(route, task+of.name)+named, statuses[i])
				}
			}
			ofOwn, byLook := http.StatusNotFound, statuses[i]
			switch {
			case caller == keyless, strings.Contains(caller, "/agent/"), own && of.tenant != "gone":
				ofOwn = statuses[i]
			case statuses[i] == http.StatusOK:
				byLook = http.StatusUnauthorized
			}
			for _, route := range ownRoutes {
				check(taskPath(route, "done-"+of.name), ofOwn)
			}
			for _, route := range lookRoutes {
				check(taskPath(route, "done-"+of.name)+named, byLook)
			}
		}
	}
}

// wantNoPlanted finds planted texts in an answer.
func wantNoPlanted(t *testing.T, what, body string) {
	t.Helper()
	if strings.Contains(body, "planted-") {
		t.Errorf("%s shows content: %s", what, body)
	}
}

// The texts are there for their owner: a test that plants none would find none.
func TestPlantedTexts(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries)
	a := h.do(request{path: "/tasks", token: "default/user/alice"})
	for n := range plantedTexts {
		if !strings.Contains(a.body, planted("default", n)) {
			t.Errorf("the owner does not see %s", planted("default", n))
		}
	}
}

// listed lists tasks as "TENANT ID", where the tenant is shown, following next.
func (h *testHost) listed(token, query string) (list []string, status int) {
	h.t.Helper()
	for after := ""; ; {
		a := h.do(request{path: "/skep/v1/tasks?limit=2&" + query + "&after=" + after, token: token})
		if a.status != http.StatusOK {
			return nil, a.status
		}
		var page struct {
			Tasks []struct {
				ID     string `json:"task_id"`
				Tenant string
				Finish *string `json:"finish_subject"`
			}
			Next      *string
			SpeaksFor string `json:"speaks_for"`
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || page.SpeaksFor != "store" {
			h.t.Fatalf("%s: %s %v", query, a.body, err)
		}
		for _, task := range page.Tasks {
			if task.Tenant != "" && task.Finish != nil {
				h.t.Errorf("%s as %s: %s has a subject", query, token, task.ID)
			}
			list = append(list, strings.TrimSpace(task.Tenant+" "+task.ID))
		}
		wantNoPlanted(h.t, query, a.body)
		if page.Next == nil {
			slices.Sort(list)
			return list, a.status
		}
		after = *page.Next
	}
}

// Each role lists the scopes that it may list, and filters select.
func TestTaskListByRole(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := watchedHost(t, &entries)
	names := func(tenant, who string, states ...string) (list []string) {
		for _, s := range states {
			list = append(list, strings.TrimSpace(tenant+" "+s+"-"+who))
		}
		return list
	}
	all := []string{"done", "last", "paused"}
	alice, bob, acme := names("default", "default", all...), names("default", "bob", all...), names("acme", "acme", all...)
	tenant := slices.Concat(bob, alice)
	slices.Sort(tenant)
	host := slices.Concat(acme, tenant)
	for _, c := range []struct {
		token, query string
		want         []string
	}{
		{"default/user/alice", "scope=own", names("", "default", all...)},
		{"default/user/alice", "state=paused", names("", "default", "paused")},
		{"default/user/alice", "agent=nobody", nil},
		{"gone/user/alice", "scope=own", nil},
		{"default/admin/ada", "scope=own", nil},
		{"default/admin/ada", "scope=tenant", tenant},
		{"default/admin/ada", "scope=tenant&tenant=default", tenant},
		{"default/admin/ada", "scope=tenant&state=paused", []string{"default paused-bob", "default paused-default"}},
		{"acme/admin/ann", "scope=tenant", acme},
		{"gone/admin/gil", "scope=tenant", nil},
		{"default/operator/op", "scope=host", host},
		{"acme/operator/op", "scope=host", host},
		{"default/operator/op", "scope=tenant", tenant},
		{"default/operator/op", "tenant=acme", acme},
		{"default/operator/op", "tenant=acme&scope=own", nil},
		{"default/operator/op", "scope=host&tenant=acme", acme},
		{"default/operator/op", "scope=host&tenant=default", tenant},
		{"default/operator/op", "scope=host&tenant=acme&state=paused", []string{"acme paused-acme"}},
		{"default/operator/op", "scope=host&state=paused", []string{"acme paused-acme", "default paused-bob", "default paused-default"}},
		{"default/operator/op", "scope=host&agent=boss", host},
		{"default/operator/op", "scope=host&agent=math", nil},
		{"default/operator/op", "scope=host&since=2000-01-01T00:00:00Z", host},
		{"default/operator/op", "scope=host&since=2200-01-01T00:00:00Z", nil},
		{"default/operator/op", "scope=host&cost=1", nil},
		{"default/operator/op", "scope=host&order=cost", nil},
		{"default/operator/op", "scope=host&order=created", host},
	} {
		if got, status := h.listed(c.token, c.query); status != http.StatusOK || !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %d %q, want %q", c.token, c.query, status, got, c.want)
		}
	}
	for query, status := range map[string]int{
		"scope=all": 400, "state=x": 400, "since=x": 400, "cost=-1": 400, "cost=x": 400, "order=x": 400, "scope=own&after=x": 400,
		"scope=own&before=2200-01-01T00:00:00Z": 400, "scope=own&scope=own": 400, "scope=tenant": 401, "scope=host": 401, "tenant=acme": 401,
	} {
		if a := h.do(request{path: "/skep/v1/tasks?" + query, token: "default/user/alice"}); a.status != status {
			t.Errorf("%s: %d %s, want %d", query, a.status, a.body, status)
		}
	}
	for _, query := range []string{"scope=host", "tenant=acme", "scope=tenant&tenant=acme"} {
		if _, status := h.listed("default/admin/ada", query); status != http.StatusUnauthorized {
			t.Errorf("an admin lists %s: %d", query, status)
		}
	}
}

// Operators end tasks of all, admins those of their tenant, and the audit log has it.
func TestCancelByRole(t *testing.T) {
	t.Parallel()
	for caller, statuses := range visibility {
		t.Run(strings.ReplaceAll(caller, "/", "-"), func(t *testing.T) {
			t.Parallel()
			var entries []audit.Entry
			h := watchedHost(t, &entries)
			for i, of := range whose {
				before := len(entries)
				a := h.do(request{method: "POST", path: "/skep/v1/tasks/paused-" + of.name + "/cancel?tenant=" + of.tenant + "&instance=" + of.instance, token: caller})
				want := statuses[i]
				if want == http.StatusOK {
					want = http.StatusAccepted
				}
				if a.status != want {
					t.Errorf("%s: %d %s, want %d", of.name, a.status, a.body, want)
				}
				wantNoPlanted(t, of.name, a.body)
				owns := strings.Contains(caller, "/user/")
				if audited := len(entries) > before; audited != (want == http.StatusAccepted && !owns) {
					t.Errorf("%s: audited %v: %+v", of.name, audited, entries[before:])
				}
				if of.tenant == "gone" {
					continue
				}
				snap, err := h.store.Load(t.Context(), swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: of.tenant, Swarm: "hive", Instance: of.instance}, Task: "paused-" + of.name})
				if ended := snap.Task.State == swarm.StateCancelled; err != nil || ended != (want == http.StatusAccepted) {
					t.Errorf("%s is %s, %v", of.name, snap.Task.State, err)
				}
			}
		})
	}
}

// No route that reads shows operators and admins what was said in tasks of others, whether it
// answers or refuses.
func TestNoRouteShowsContentByRole(t *testing.T) {
	t.Parallel()
	for name, looks := range map[string]*rest.Looks{"never": nil, "reason": rest.NewLooks([]byte("a secret"), false)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var entries []audit.Entry
			readAllRoutes(t, watchedHost(t, &entries, func(h *testHost) { h.opt.Looks = looks }))
			for _, e := range entries {
				wantNoPlanted(t, "the audit log", fmt.Sprintf("%+v", e))
			}
		})
	}
}

// readAllRoutes reads each route as operators and admins, for each task of others.
func readAllRoutes(t *testing.T, h *testHost) {
	tried := 0
	for _, op := range document(t).Operations() {
		if op.Method != http.MethodGet {
			continue
		}
		for _, of := range whose {
			for _, task := range []string{"done-", "paused-", "last-"} {
				path := strings.ReplaceAll(good[op.String()].path, "/done", "/"+task+of.name)
				mark := "?"
				if strings.Contains(path, "?") {
					mark = "&"
				}
				named := path + mark + "tenant=" + of.tenant + "&instance=" + of.instance + "&task_id=" + task + of.name
				for _, token := range []string{"default/operator/op", "acme/operator/op", "default/admin/ada", "acme/admin/ann"} {
					for _, p := range []string{path, named, named + "&scope=host", named + "&scope=tenant"} {
						wantNoPlanted(t, token+" GET "+p, h.do(request{path: p, token: token}).body)
						tried++
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("%d requests", tried)
	}
}
