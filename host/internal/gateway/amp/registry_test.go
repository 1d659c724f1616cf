package amp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// names are the ids of agents in a list of a result.
func names(list any) string {
	var ids []string
	all, _ := list.([]any)
	for _, one := range all {
		agent, _ := one.(amptest.Object)["agent"].(amptest.Object)
		ids = append(ids, fmt.Sprint(agent["id"]))
	}
	return strings.Join(ids, " ")
}

func discover(t *testing.T, s *site, query amptest.Object) amptest.Object {
	t.Helper()
	m := amptest.New("request", "agent-1", "registry", amptest.Object{"query": query})
	m.Message.Destination.Capability = "discovery"
	r := s.send(t, m)
	if r.Status != http.StatusOK || r.Message.Message.Type != "response" || r.Message.Header("correlation_id") != m.Message.ID {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	return r.Message.Result()
}

// TestDiscovery (M-001, M-002, M-030, M-031, M-113, D-M8, D-M9, V-M21): agents are found that have
// all capabilities, or any; constraints count for what was measured.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, c := range map[string]struct {
		query           amptest.Object
		agents, partial string
	}{
		"one":          {amptest.Object{"capabilities": []string{"text-analysis"}}, "echo@hive", ""},
		"all":          {amptest.Object{"capabilities": []string{"text-analysis", "mail.message"}}, "echo@hive", "fails@hive late@hive slow@hive"},
		"any":          {amptest.Object{"capabilities": []string{"text-analysis", "none"}, "match": "any"}, "echo@hive", ""},
		"some":         {amptest.Object{"capabilities": []string{"text-analysis", "none"}}, "", "echo@hive"},
		"none":         {amptest.Object{"capabilities": []string{"none"}}, "", ""},
		"everything":   {amptest.Object{}, "echo@hive fails@hive late@hive slow@hive", ""},
		"not measured": {amptest.Object{"capabilities": []string{"text-analysis"}, "constraints": amptest.Object{"max_latency_ms": 0}}, "echo@hive", ""},
		"one twice":    {amptest.Object{"capabilities": []string{"text-analysis", "text-analysis", "mail.message"}}, "echo@hive", "fails@hive late@hive slow@hive"},
	} {
		got := discover(t, s, c.query)
		if a, p := names(got["agents"]), names(got["partial_matches"]); a != c.agents || p != c.partial {
			t.Errorf("%s: agents %q, partial %q", name, a, p)
		}
	}
	unmeasured, _ := discover(t, s, amptest.Object{"capabilities": []string{"text-analysis"}})["agents"].([]any)
	fresh, _ := unmeasured[0].(amptest.Object)
	if m, _ := fresh["metrics"].(amptest.Object); m["measured"] != false || m["success_rate"] != nil {
		t.Errorf("without a measurement: %v", fresh["metrics"])
	}
	for range 3 {
		wantText(t, s.send(t, amptest.Request("agent-1", "echo", "text-analysis", amptest.Object{"text": "x"})), "x")
		s.send(t, amptest.Mail("agent-1", "fails", "x"))
	}
	found, _ := discover(t, s, amptest.Object{"capabilities": []string{"text-analysis"}})["agents"].([]any)
	one, _ := found[0].(amptest.Object)
	if m, _ := one["metrics"].(amptest.Object); m["measured"] != true || m["samples"] != 3.0 || m["success_rate"] != 1.0 {
		t.Errorf("measured %v", one["metrics"])
	}
	constraints := amptest.Object{"max_latency_ms": -1}
	if got := discover(t, s, amptest.Object{"capabilities": []string{"text-analysis"}, "constraints": constraints}); names(got["agents"]) != "" {
		t.Errorf("too slow and found: %v", got)
	}
	constraints = amptest.Object{"min_success_rate": 0.95}
	if got := discover(t, s, amptest.Object{"capabilities": []string{"mail.message"}, "constraints": constraints}); names(got["agents"]) != "echo@hive late@hive slow@hive" {
		t.Errorf("with success %v", names(got["agents"]))
	}
	capabilities, _ := one["capabilities"].([]any)
	declared, _ := json.Marshal(capabilities)
	if len(capabilities) != 2 || !json.Valid(declared) || capabilities[0].(amptest.Object)["version"] != "1.2" || capabilities[0].(amptest.Object)["input_schema"] == nil {
		t.Errorf("declared %s", declared)
	}
}

// TestNegotiation (M-032, M-033, M-079, V-M23): whether a task can be done is told with
// offers and reasons, and which version is spoken.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	wantText(t, s.send(t, amptest.Request("agent-1", "echo", "text-analysis", amptest.Object{"text": "x"})), "x")
	check := func(agent string, requirements amptest.Object) amptest.Reply {
		t.Helper()
		return s.send(t, amptest.New("request", "agent-1", agent, amptest.Object{"negotiation_type": "capability_check", "requirements": requirements}))
	}
	s.expose("translator", gatewaytest.Echo, gateway.Capability{ID: "summarization", Constraints: []byte(`{"max_tokens":1000}`)})
	s.expose("poet", gatewaytest.Echo, gateway.Capability{ID: "summarization", Constraints: []byte(`{"max_tokens":2000}`)})
	for name, c := range map[string]struct {
		agent        string
		requirements amptest.Object
		feasible     bool
		offers       int
	}{
		"tokens of two":      {"", amptest.Object{"capabilities": []string{"summarization"}, "estimated_tokens": 1000}, true, 2},
		"tokens of one":      {"", amptest.Object{"capabilities": []string{"summarization"}, "estimated_tokens": 1001}, true, 1},
		"tokens of none":     {"", amptest.Object{"capabilities": []string{"summarization"}, "estimated_tokens": 2001}, false, 0},
		"tokens not told":    {"", amptest.Object{"capabilities": []string{"summarization"}}, true, 2},
		"feasible":           {"", amptest.Object{"capabilities": []string{"text-analysis"}, "estimated_tokens": 1000, "deadline": time.Now().Add(time.Hour).Format(time.RFC3339)}, true, 1},
		"by any":             {"", amptest.Object{"capabilities": []string{"mail.message"}}, true, 6},
		"by one agent":       {"echo", amptest.Object{"capabilities": []string{"mail.message"}}, true, 1},
		"not by this one":    {"slow", amptest.Object{"capabilities": []string{"text-analysis"}}, false, 0},
		"missing":            {"", amptest.Object{"capabilities": []string{"text-analysis", "translation"}}, false, 1},
		"a deadline of past": {"", amptest.Object{"capabilities": []string{"text-analysis"}, "deadline": "2025-01-27T11:00:00Z"}, false, 0},
	} {
		r := check(c.agent, c.requirements)
		got := r.Message.Result()
		offers, _ := got["offers"].([]any)
		missing, _ := got["missing"].([]any)
		reasons, _ := got["reasons"].([]any)
		if got["feasible"] != c.feasible || len(offers) != c.offers || (len(missing) == 0) != c.feasible || len(reasons) != len(missing) {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
	wantFault(t, check("nobody", amptest.Object{"capabilities": []string{"mail.message"}}), 404, "AGENT_NOT_FOUND", "")
	wantFault(t, check("", amptest.Object{}), 400, "INVALID_SCHEMA", "MALFORMED")
	wantFault(t, check("", amptest.Object{"capabilities": []string{"x"}, "deadline": "soon"}), 400, "INVALID_SCHEMA", "MALFORMED")
	version := func(kind string, supported ...string) amptest.Reply {
		t.Helper()
		return s.send(t, amptest.New("request", "agent-1", "", amptest.Object{"negotiation_type": kind, "supported": supported}))
	}
	if r := version("protocol_version", "2.0", "1.0"); r.Message.Result()["selected"] != "1.0" {
		t.Errorf("selected %s", r.Text)
	}
	wantFault(t, version("protocol_version", "2.0"), 400, "INVALID_SCHEMA", "VERSION_UNSUPPORTED")
	wantFault(t, version("price"), 400, "INVALID_SCHEMA", "MALFORMED")
	s.rt.FailNext("CheckRate", fmt.Errorf("too many: %w", gateway.ErrBusy))
	wantFault(t, version("protocol_version", "1.0"), 429, "RATE_LIMIT_EXCEEDED", "")
}

// TestRouting (M-020, M-111, M-114): a request without an agent goes to one with the capability
// that has the least to do; a text for nobody goes to an entrypoint.
func TestRouting(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hold := make(chan struct{})
	work := func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return gateway.Answer{Body: `{"by":"` + turn.Agent.Name + `"}`}
	}
	for _, name := range []string{"one", "two", "three"} {
		s.expose(name, work, gateway.Capability{ID: "dig"})
	}
	m := amptest.Request("agent-1", "", "dig", nil)
	var places []string
	for n := range 3 {
		m.Message.ID = fmt.Sprint("dig-", n)
		r := s.send(t, m, "Prefer", "respond-async")
		places = append(places, r.Header.Get("Location"))
	}
	close(hold)
	by := map[any]bool{}
	for _, place := range places {
		r, err := s.Get(s.server.URL+place, "Prefer", "wait=30")
		if err != nil || r.Message == nil {
			t.Fatalf("%s, %v", r.Text, err)
		}
		by[r.Message.Result()["by"]] = true
	}
	if len(by) != 3 {
		t.Errorf("the work was done by %v", by)
	}
	s.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "boss", Entrypoint: true}, gatewaytest.Echo)
	if r := s.send(t, amptest.Mail("agent-1", "", "hello")); r.Message.Message.Source.AgentID != "boss" {
		t.Errorf("a text for nobody: %s", r.Text)
	}
	wantFault(t, s.send(t, amptest.Request("agent-1", "", "fly", nil)), 404, "CAPABILITY_NOT_FOUND", "")
}

// TestEvents (M-038): an event is told to the agent that it names, or to all, and
// owed nothing.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	seen := make(chan gateway.Ask, 10)
	s.expose("listens", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		seen <- turn.Ask
		return gateway.Answer{}
	})
	r := s.send(t, amptest.New("event", "agent-1", "listens", amptest.Object{"event_type": "rain", "mm": 3}))
	a := <-seen
	if r.Status != http.StatusAccepted || r.Text != "" || a.Kind != gateway.Tells || a.Subject != "event: rain" || a.Info["event_type"] != "rain" || a.Body != `{"event_type":"rain","mm":3}` {
		t.Errorf("got %d %s, the agent %+v", r.Status, r.Text, a)
	}
	s.send(t, amptest.New("event", "agent-1", "listens", amptest.Object{"event_type": "mail.message", "subject": "weather", "body": "it rains"}))
	if a := <-seen; a.Subject != "weather" || a.Body != "it rains" {
		t.Errorf("the agent got %+v", a)
	}
	wantFault(t, s.send(t, amptest.New("event", "agent-1", "nobody", amptest.Object{"event_type": "rain"})), 404, "AGENT_NOT_FOUND", "")
	wantFault(t, s.send(t, amptest.New("event", "agent-1", "listens", amptest.Object{"mm": 3})), 400, "INVALID_SCHEMA", "MALFORMED")
}

// TestHealth (M-092): the host says that it takes messages, and to a caller what its agents
// can do; each agent has a state of its own.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	get := func(token, path string) (int, amptest.Object) {
		t.Helper()
		r, err := amptest.Client{Token: token}.Get(s.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var body amptest.Object
		if err := json.Unmarshal([]byte(r.Text), &body); err != nil {
			t.Fatalf("%s: %s", path, r.Text)
		}
		return r.Status, body
	}
	for _, prefix := range []string{"/aip/v1/", "/amp/v1/"} {
		if status, body := get("", prefix+"health"); status != 200 || body["status"] != "healthy" || body["protocol_version"] != "1.0" || body["capabilities"] != nil {
			t.Errorf("%d %v", status, body)
		}
		status, body := get(token, prefix+"health")
		if list, _ := body["capabilities"].([]any); status != 200 || len(list) != 2 || body["load"] != 0.0 {
			t.Errorf("%d %v", status, body)
		}
		status, body = get(token, prefix+"agents/echo/health")
		if agent, _ := body["agent"].(amptest.Object); status != 200 || agent["id"] != "echo@hive" || agent["framework"] != "custom" || agent["protocol_version"] != "1.0" {
			t.Errorf("%d %v", status, body)
		}
		for path, want := range map[string]int{"agents/nobody/health": 404} {
			if status, _ := get(token, prefix+path); status != want {
				t.Errorf("%s has %d", path, status)
			}
		}
		if status, _ := get("", prefix+"agents/echo/health"); status != 401 {
			t.Errorf("a stranger sees an agent: %d", status)
		}
		if status, _ := get("none", prefix+"health"); status != 401 {
			t.Errorf("a wrong credential: %d", status)
		}
	}
}

// TestSession (M-005, M-063, G-021): messages with a session are one conversation, which the
// answer names.
func TestSession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.expose("counts", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: fmt.Sprint("message ", len(turn.History)+1)}
	})
	m := amptest.Mail("agent-1", "counts", "x")
	first := s.send(t, m)
	session := first.Message.Message.Source.SessionID
	if session == "" {
		t.Fatalf("no session: %s", first.Text)
	}
	m = amptest.Mail("agent-1", "counts", "x")
	m.Message.Source.SessionID = session
	wantText(t, s.send(t, m), "message 2")
	m = amptest.Mail("agent-1", "counts", "x")
	m.Message.Payload["context"] = amptest.Object{"session_id": session, "conversation_history": []any{}}
	wantText(t, s.send(t, m), "message 3")
}
