package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
	"skep/host/internal/telemetry/pulse"
)

// withPulse gives a host a feed of its commits.
func withPulse(h *testHost) {
	ring := pulse.NewRing("host-a", 1024)
	h.opt.Pulse, h.limits.Observer = ring, ring
}

// pulseKinds are the kinds of the events of an answer, with its resets.
func pulseKinds(t *testing.T, a answer) (kinds []string) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, e := range events(t, a.body) {
		kinds = append(kinds, e.name)
	}
	return kinds
}

// The feed has the shape of a task, in the order of its commits, and nothing of its content.
func TestPulseShape(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse)
	h.postAndWait(obj{"task_id": "t1", "subject": "planted-subject", "body": calls("ask", []string{"confirm"})})
	h.postAndWait(obj{"task_id": "t2", "body": "planted-body"})
	a := h.do(request{path: "/skep/v1/pulse?limit=8", token: operatorToken, header: http.Header{"Last-Event-Id": {h.opt.Pulse.ID(0)}}})
	kinds := pulseKinds(t, a)
	for _, want := range []string{"mail", "task", "turn", "question"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s among %v", want, kinds)
		}
	}
	if strings.Contains(a.body, "planted") {
		t.Errorf("the feed has content: %s", a.body)
	}
	for i, e := range events(t, a.body) {
		if want := h.opt.Pulse.ID(uint64(i + 1)); e.id != want {
			t.Errorf("event %d has the id %s, want %s", i, e.id, want)
		}
		var shape pulse.Event
		if err := json.Unmarshal([]byte(e.data), &shape); err != nil || string(shape.Kind) != e.name || shape.Instance != "user:alice" || shape.Time.IsZero() {
			t.Errorf("%s: %v", e.data, err)
		}
	}
}

// Operators see all, admins their tenant, users their own tasks; agents and callers without a key
// nothing.
func TestPulseRoles(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse, withAcme)
	ring := h.opt.Pulse
	start := ring.ID(0)
	ring.Publish(
		pulse.Event{Kind: pulse.Reload, Target: "of-host"},
		pulse.Event{Kind: pulse.Mail, Tenant: "default", Swarm: "hive", Instance: "user:alice", Task: "of-alice"},
		pulse.Event{Kind: pulse.Mail, Tenant: "default", Swarm: "hive", Instance: "user:bob", Task: "of-bob"},
		pulse.Event{Kind: pulse.Mail, Tenant: "acme", Swarm: "hive", Instance: "user:alice", Task: "of-acme"},
		pulse.Event{Kind: pulse.Mail, Tenant: "default", Swarm: "hive", Instance: "user:bob", Task: "end"},
		pulse.Event{Kind: pulse.Mail, Tenant: "default", Swarm: "hive", Instance: "user:alice", Task: "end"},
	)
	all := []string{"of-host", "of-alice", "of-bob", "of-acme"}
	for _, c := range []struct {
		token, query string
		limit        int
		want         []string
	}{
		{operatorToken, "", 4, all},
		{operatorToken, "&tenant=acme", 1, []string{"of-acme"}},
		{operatorToken, "&tenant=default&owner=user:bob", 1, []string{"of-bob"}},
		{operatorToken, "&task=of-acme", 1, []string{"of-acme"}},
		{operatorToken, "&kind=reload,audit", 1, []string{"of-host"}},
		{adminToken, "", 3, []string{"of-alice", "of-bob"}},
		{adminToken, "&owner=user:alice", 2, []string{"of-alice"}},
		{aliceToken, "", 2, []string{"of-alice"}},
		{bobToken, "", 2, []string{"of-bob"}},
	} {
		a := h.do(request{path: fmt.Sprintf("/skep/v1/pulse?limit=%d%s", c.limit, c.query), token: c.token, header: http.Header{"Last-Event-Id": {start}}})
		if a.status != http.StatusOK {
			t.Fatalf("%s%s: %d %s", c.token, c.query, a.status, a.body)
		}
		for _, name := range all {
			if strings.Contains(a.body, name) != slices.Contains(c.want, name) {
				t.Errorf("%s %q: %s, want %v", c.token, c.query, a.body, c.want)
			}
		}
	}
	for _, c := range []refusal{
		{"another tenant", adminToken, "GET", "/skep/v1/pulse?tenant=acme", "", 401, "invalid role: only an operator may name another tenant"},
		{"another user", aliceToken, "GET", "/skep/v1/pulse?owner=user:bob", "", 401, "invalid role: users follow their own tasks"},
		{"no kind", aliceToken, "GET", "/skep/v1/pulse?kind=task,body", "", 400, `kind "body" is none of [task turn mail question outbox refusal budget quarantine reload audit]`},
	} {
		c.check(t, h.handler)
	}
}

// A reader that comes again goes on behind its last id; one of another incarnation, as before a
// restart of the host, and a new one begin with a reset, which names the host.
func TestPulseResume(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse)
	a := h.do(request{path: "/skep/v1/pulse?limit=1", token: operatorToken})
	first := events(t, a.body)
	if len(first) != 1 || first[0].name != "reset" || first[0].id != h.opt.Pulse.ID(0) || !strings.Contains(first[0].data, `"host":"host-a","reason":"new","missed":0`) {
		t.Fatalf("a new reader: %s", a.body)
	}
	h.postAndWait(obj{"task_id": "t1", "body": "b"})
	last := first[0].id
	for n := 1; n <= 3; n++ {
		a := h.do(request{path: "/skep/v1/pulse?limit=1", token: operatorToken, header: http.Header{"Last-Event-Id": {last}}})
		got := events(t, a.body)
		if len(got) != 1 || got[0].id != h.opt.Pulse.ID(uint64(n)) {
			t.Fatalf("after %s: %s", last, a.body)
		}
		last = got[0].id
	}
	again := pulse.NewRing("host-a", 1024)
	restarted := rest.New(h.rt, newKeys(t), rest.Options{Swarm: "hive", Pulse: again})
	a = serve(t, restarted, request{path: "/skep/v1/pulse?limit=1", token: operatorToken, header: http.Header{"Last-Event-Id": {last}}})
	if got := events(t, a.body); len(got) != 1 || got[0].name != "reset" || !strings.Contains(got[0].data, `"reason":"incarnation"`) || got[0].id != again.ID(0) {
		t.Errorf("after a restart: %s", a.body)
	}
	again.Close()
	if a := serve(t, restarted, request{path: "/skep/v1/pulse", token: operatorToken, header: http.Header{"Last-Event-Id": {again.ID(0)}}}); a.status != http.StatusOK || len(events(t, a.body)) != 0 {
		t.Errorf("a host that stops: %d %s", a.status, a.body)
	}
}

var _ swarm.Observer = (*pulse.Ring)(nil)

// The commands of the page reach the feed, and the page has all kinds and fields of events.
func TestPulsePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHost(t, withPulse)
	paths := regexp.MustCompile(`curl .*http://127\.0\.0\.1:8000(/[^']*)'`).FindAllSubmatch(page, -1)
	if len(paths) == 0 {
		t.Fatal("the page has no command")
	}
	for _, m := range paths {
		path := strings.Replace(string(m[1]), "host=http://10.0.0.5:8000", "host=host-a", 1)
		if base, query, _ := strings.Cut(path, "?"); !strings.Contains(query, "limit=") {
			path = base + "?" + query + "&limit=1"
		} else {
			path = strings.Replace(path, "limit=100", "limit=1", 1)
		}
		if kinds := pulseKinds(t, h.do(request{path: path, token: operatorToken})); !slices.Equal(kinds, []string{"reset"}) {
			t.Errorf("%s: %v", path, kinds)
		}
	}
	words := []string{}
	for _, k := range pulse.Kinds() {
		words = append(words, string(k))
	}
	for _, fields := range []reflect.Type{reflect.TypeFor[pulse.Event](), reflect.TypeFor[pulse.Usage]()} {
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			words = append(words, name)
		}
	}
	for _, word := range append(words, pulse.ResetBehind, pulse.ResetIncarnation, strconv.Itoa(pulse.DefaultSize)) {
		if !regexp.MustCompile(`\b` + word + `\b`).Match(page) {
			t.Errorf("the page does not have %q", word)
		}
	}
}
