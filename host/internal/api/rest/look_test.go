package rest_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// lookingHost is watchedHost with looks and a clock that tests move.
func lookingHost(t *testing.T, entries *[]audit.Entry, looks *rest.Looks, clock *testClock) *testHost {
	return watchedHost(t, entries, func(h *testHost) { h.opt.Looks, h.opt.Now = looks, clock.now })
}

// testClock is moved by add.
type testClock struct{ ahead time.Duration }

func (c *testClock) now() time.Time      { return time.Now().Add(c.ahead) }
func (c *testClock) add(d time.Duration) { c.ahead += d }

// look is what a look is answered with.
type look struct {
	Tenant, Instance, Look, Until string
	Task                          string `json:"task_id"`
}

// lookAt begins a look at a task of the table whose.
func (h *testHost) lookAt(token, task string, of int, reason string) (look, answer) {
	h.t.Helper()
	path := "/skep/v1/tasks/" + task + "/look?tenant=" + whose[of].tenant + "&instance=" + whose[of].instance
	a := h.do(request{method: "POST", path: path, token: token, body: text(obj{"reason": reason})})
	var l look
	if a.status == http.StatusOK {
		a.json(h.t, &l)
	}
	return l, a
}

// contentRoutes show what is said in a task, each some of its planted texts.
var contentRoutes = map[string][]int{
	"%s/events?":             {0, 1, 2, 3, 4, 5, 6},
	"%s/history?agent=boss&": {0, 5},
	"%s?":                    {},
}

// readLooked returns what the routes of content say with a token, and their statuses.
func (h *testHost) readLooked(caller, task string, of int, token string) (all string, statuses []int) {
	h.t.Helper()
	for path := range contentRoutes {
		q := request{path: "/skep/v1/tasks/" + fmt.Sprintf(path, task) + "tenant=" + whose[of].tenant + "&instance=" + whose[of].instance, token: caller}
		if token != "" {
			q.header = http.Header{"Skep-Look": {token}}
		}
		a := h.do(q)
		all, statuses = all+a.body, append(statuses, a.status)
	}
	slices.Sort(statuses)
	return all, slices.Compact(statuses)
}

// A look shows what is said in one task to one caller for 30 minutes: operators in all tasks, admins
// in those of their tenant.
func TestLookByRole(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), &testClock{})
	for caller, statuses := range visibility {
		for i, of := range whose {
			want := statuses[i]
			if strings.Contains(caller, "/user/") || strings.Contains(caller, "/agent/") {
				want = http.StatusUnauthorized
			}
			before := len(entries)
			l, a := h.lookAt(caller, "done-"+of.name, i, "ticket 17")
			if a.status != want {
				t.Errorf("%s looks at %s: %d %s, want %d", caller, of.name, a.status, a.body, want)
			}
			wantNoPlanted(t, caller, a.body)
			if want != http.StatusOK {
				continue
			}
			e := entries[len(entries)-1]
			if len(entries) != before+1 || e.Act != "task.look" || e.Reason != "ticket 17" || e.Target != of.tenant+"/"+of.instance+"/done-"+of.name || e.Outcome != audit.Done {
				t.Errorf("%s looks at %s: audited %+v", caller, of.name, entries[before:])
			}
			body, status := h.readLooked(caller, "done-"+of.name, i, l.Look)
			if !slices.Equal(status, []int{http.StatusOK}) {
				t.Errorf("%s reads %s: %d", caller, of.name, status)
			}
			for _, n := range contentRoutes["%s/events?"] {
				if !strings.Contains(body, planted(of.name, n)) {
					t.Errorf("%s, who looks, does not see %s", caller, planted(of.name, n))
				}
			}
		}
	}
	for _, e := range entries {
		wantNoPlanted(t, "the audit log", fmt.Sprintf("%+v", e))
	}
}

// A look is of one task and one caller, and whoever changes its token sees nothing.
func TestLookOfOne(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	clock := &testClock{}
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), clock)
	const op = "default/operator/op"
	l, _ := h.lookAt(op, "done-default", 0, "ticket 17")
	end, mac, _ := strings.Cut(l.Look, ".")
	later := fmt.Sprint(clock.now().Add(time.Hour).Unix())
	foreign := rest.NewLooks([]byte("another secret"), false)
	h2 := lookingHost(t, &entries, foreign, clock)
	other, _ := h2.lookAt(op, "done-default", 0, "ticket 17")
	for name, c := range map[string]struct {
		caller, task string
		of           int
		token        string
	}{
		"another task":     {op, "paused-default", 0, l.Look},
		"another owner":    {op, "done-bob", 1, l.Look},
		"another tenant":   {op, "done-acme", 2, l.Look},
		"another operator": {"default/operator/op2", "done-default", 0, l.Look},
		"of that name":     {"acme/operator/op", "done-default", 0, l.Look},
		"an admin":         {"default/admin/op", "done-default", 0, l.Look},
		"a user":           {"default/user/bob", "done-default", 0, l.Look},
		"a longer one":     {op, "done-default", 0, later + "." + mac},
		"without end":      {op, "done-default", 0, "." + mac},
		"without mac":      {op, "done-default", 0, end + "."},
		"a number":         {op, "done-default", 0, end},
		"a word":           {op, "done-default", 0, "free"},
		"of another store": {op, "done-default", 0, other.Look},
	} {
		body, status := h.readLooked(c.caller, c.task, c.of, c.token)
		wantNoPlanted(t, name, body)
		if !slices.Equal(status, []int{http.StatusUnauthorized}) {
			t.Errorf("%s: %d", name, status)
		}
	}
	if body, _ := h.readLooked(op, "done-default", 0, ""); strings.Contains(body, "planted-") {
		t.Error("without its token a look shows content")
	}
	clock.add(29 * time.Minute)
	if body, _ := h.readLooked(op, "done-default", 0, l.Look); !strings.Contains(body, planted("default", 0)) {
		t.Error("the look is over after 29 minutes")
	}
	clock.add(time.Minute)
	body, status := h.readLooked(op, "done-default", 0, l.Look)
	if wantNoPlanted(t, "after 30 minutes", body); !slices.Equal(status, []int{http.StatusUnauthorized}) {
		t.Errorf("after 30 minutes: %d", status)
	}
}

// A look that the file does not allow, or that has no good reason, is refused, and leaves no line in
// the owner's log.
func TestLookRefused(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	off := lookingHost(t, &entries, nil, &testClock{})
	on := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), &testClock{})
	l, _ := on.lookAt("default/operator/op", "last-default", 0, "ticket 17")
	if _, a := off.lookAt("default/operator/op", "done-default", 0, "ticket 17"); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "[console] look") || strings.Contains(a.body, "invalid role") {
		t.Errorf("off: %d %s", a.status, a.body)
	}
	if len(entries) != 1 {
		t.Errorf("a look that was refused is recorded as an act: %+v", entries[1:])
	}
	body, status := off.readLooked("default/operator/op", "last-default", 0, l.Look)
	if wantNoPlanted(t, "off", body); !slices.Equal(status, []int{http.StatusUnauthorized}) {
		t.Errorf("off: %d", status)
	}
	for name, reason := range map[string]string{
		"none": "", "spaces": " \t", "long": strings.Repeat("x", 401), "lines": "a\nb", "terminal": "a\x1b[2J", "order": "a\u202eb",
	} {
		if _, a := on.lookAt("default/operator/op", "done-default", 0, reason); a.status != http.StatusBadRequest || !strings.Contains(a.body, "reason") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	mine := on.do(request{method: "POST", path: "/skep/v1/tasks/done-default/look?instance=user:root", token: "default/operator/root", body: `{"reason":"x"}`})
	if mine.status != http.StatusNotFound && mine.status != http.StatusBadRequest {
		t.Errorf("own: %d %s", mine.status, mine.body)
	}
	for _, h := range []*testHost{off, on} {
		if a := h.do(request{path: "/tasks/done-default", token: "default/user/alice"}); strings.Contains(a.body, "task_look") {
			t.Errorf("the owner reads of a look that was refused: %s", a.body)
		}
	}
}

// The owner reads in the log who looks, until when, and why, whether the task runs, waits or has
// ended, and the end stays when it was.
func TestOwnerReadsOfLook(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), &testClock{})
	for _, task := range []string{"done-default", "paused-default", "last-default"} {
		key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: "user:alice"}, Task: task}
		before, err := h.store.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		l, a := h.lookAt("acme/operator/op", task, 0, "ticket 17: no answer")
		if a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", task, a.status, a.body)
		}
		log := h.do(request{path: "/skep/v1/tasks/" + task + "/events", token: "default/user/alice"})
		for _, want := range []string{"event: task_look", "operator op reads this task until " + l.Until + ": ticket 17: no answer"} {
			if !strings.Contains(log.body, want) {
				t.Errorf("%s: the owner does not read %q in\n%s", task, want, log.body)
			}
		}
		after, err := h.store.Load(t.Context(), key)
		if err != nil || after.Task.State != before.Task.State || after.Task.Finish != before.Task.Finish ||
			after.Task.State.Ended() && !after.Task.Updated.Equal(before.Task.Updated) {
			t.Errorf("%s was %+v, is %+v, %v", task, before.Task, after.Task, err)
		}
		if a := h.do(request{path: "/skep/v1/tasks/" + task, token: "default/user/alice"}); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", task, a.status, a.body)
		}
	}
}

// fullAudit cannot be written.
type fullAudit struct{}

func (fullAudit) Record(audit.Entry) error  { return errors.New("no space left") }
func (fullAudit) RecordRefusal(audit.Entry) {}

// A look that cannot be audited is none.
func TestLookWithoutAudit(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Looks, h.opt.Audit = rest.NewLooks([]byte("a secret"), false), fullAudit{} })
	h.postAndWait(obj{"task_id": "done", "body": "b"})
	a := h.do(request{method: "POST", path: "/skep/v1/tasks/done/look?instance=user:alice", token: operatorToken, body: `{"reason":"x"}`})
	if a.status != http.StatusInternalServerError || strings.Contains(a.body, "look\":") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A stream ends with its look.
func TestLookStreamEnds(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	clock := &testClock{}
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), clock)
	h.do(request{method: "POST", path: "/message", token: "default/user/alice", header: http.Header{"Prefer": {"respond-async"}},
		body: text(obj{"task_id": "runs", "body": calls("gate", obj{"name": "never"})})})
	l, a := h.lookAt("default/operator/op", "runs", 0, "ticket 17")
	if a.status != http.StatusOK {
		t.Fatal(a.status, a.body)
	}
	clock.add(30*time.Minute - 5*time.Second)
	got := h.do(request{path: "/skep/v1/tasks/runs/events?instance=user:alice", token: "default/operator/op", header: http.Header{"Skep-Look": {l.Look}}})
	if got.status != http.StatusOK || !strings.Contains(got.body, "event: new_message") || !strings.Contains(got.body, "ticket 17") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Another task of the same name is not shown by a look at the erased one.
func TestLookAfterErase(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), false), &testClock{})
	l, _ := h.lookAt("default/operator/op", "last-acme", 2, "ticket 17")
	if err := h.rt.EraseTenant(t.Context(), "acme", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if body, status := h.readLooked("default/operator/op", "last-acme", 2, l.Look); !slices.Equal(status, []int{http.StatusNotFound}) {
		t.Errorf("erased: %d %s", status, body)
	}
	h.do(request{method: "POST", path: "/message", token: "acme/user/alice", body: text(obj{"task_id": "last-acme", "subject": "s", "body": planted("acme", 9)})})
	body, status := h.readLooked("default/operator/op", "last-acme", 2, l.Look)
	if wantNoPlanted(t, "a new task", body); !slices.Equal(status, []int{http.StatusUnauthorized}) {
		t.Errorf("a new task: %d", status)
	}
}

// Where looks are free, operators and admins see content in their scope without one, and others do not.
func TestFreeLook(t *testing.T) {
	t.Parallel()
	var entries []audit.Entry
	h := lookingHost(t, &entries, rest.NewLooks([]byte("a secret"), true), &testClock{})
	for caller, statuses := range visibility {
		if strings.Contains(caller, "/user/") {
			continue
		}
		for i, of := range whose {
			body, status := h.readLooked(caller, "done-"+of.name, i, "")
			if !slices.Equal(status, []int{statuses[i]}) {
				t.Errorf("%s reads %s: %d, want %d", caller, of.name, status, statuses[i])
			}
			if shown := strings.Contains(body, planted(of.name, 0)); shown != (statuses[i] == http.StatusOK) {
				t.Errorf("%s reads %s: shown %v", caller, of.name, shown)
			}
		}
	}
}
