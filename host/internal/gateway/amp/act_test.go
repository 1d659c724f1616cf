package amp_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/swarm"
)

// asksMesh does a verb that asks the partner's mesh.
func (o *out) asksMesh(t *testing.T, verb, args string) (string, error) {
	t.Helper()
	raw, err := o.g.Act(t.Context(), o.p, gateway.Act{
		Verb: verb, Key: "key-1", Args: json.RawMessage(args),
		Task: swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive"}, Task: "t"},
	})
	return string(raw), err
}

// TestMeshVerbs (M-030, M-032, G-060): our agents find a partner's agents by their capabilities, and ask
// whether a task can be done. What the partner refuses or answers in another form is an error with why.
func TestMeshVerbs(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.replies(http.StatusOK, func(m amptest.Message) amptest.Message {
		return m.Reply("response", amptest.Result(amptest.Object{"asked": m.Message.Destination, "of": m.Message.Payload}))
	})
	for _, c := range []struct{ verb, args, want string }{
		{
			"discover", `{"capabilities": ["translation"], "match": "any", "max_latency_ms": 5000, "min_success_rate": 0.95}`,
			`{"asked":{"agent_id":"registry","capability":"discovery"},"of":{"query":{"capabilities":["translation"],"constraints":{"max_latency_ms":5000,"min_success_rate":0.95},"match":"any"}}}`,
		},
		{
			"capability_check", `{"capabilities": ["translation"], "agent": "agent-1", "estimated_tokens": 1000, "deadline": "2030-01-27T11:00:00Z"}`,
			`{"asked":{"agent_id":"agent-1"},"of":{"negotiation_type":"capability_check","requirements":{"capabilities":["translation"],"deadline":"2030-01-27T11:00:00Z","estimated_tokens":1000}}}`,
		},
	} {
		got, err := o.asksMesh(t, c.verb, c.args)
		if err != nil {
			t.Fatalf("%s: %v", c.verb, err)
		}
		wantMemory(t, c.verb, json.RawMessage(got), c.want)
	}
	for name, c := range map[string]struct {
		status int
		answer func(amptest.Message) amptest.Message
		want   string
	}{
		"refused": {404, func(m amptest.Message) amptest.Message {
			return m.Reply("error", amptest.Error("AGENT_NOT_FOUND", "no"))
		}, "[AGENT_NOT_FOUND] no"},
		"failed": {200, func(m amptest.Message) amptest.Message {
			return m.Reply("response", amptest.Object{"status": "failed"})
		}, "no result"},
		"without": {200, func(m amptest.Message) amptest.Message {
			return m.Reply("response", amptest.Object{"status": "success"})
		}, "no result"},
		"an event": {200, func(m amptest.Message) amptest.Message { return m.Reply("event", amptest.Result("x")) }, "event"},
		"another message": {200, func(m amptest.Message) amptest.Message {
			m.Message.ID = "other"
			return m.Reply("response", amptest.Result("x"))
		}, "another message"},
	} {
		o.replies(c.status, c.answer)
		if got, err := o.asksMesh(t, "discover", `{"capabilities": ["x"]}`); !errors.Is(err, gateway.ErrPartner) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	o.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	if _, err := o.asksMesh(t, "discover", `{"capabilities": ["x"]}`); !errors.Is(err, gateway.ErrPartner) {
		t.Errorf("an answer later: %v", err)
	}
	if _, err := o.asksMesh(t, "discover", `{"capabilities": "x"}`); !errors.Is(err, gateway.ErrInvalid) {
		t.Errorf("arguments of another form: %v", err)
	}
	o.p.URL = ""
	if _, err := o.asksMesh(t, "discover", `{"capabilities": ["x"]}`); !errors.Is(err, gateway.ErrPartner) || !strings.Contains(err.Error(), "[gateways.amp.partners.acme]") {
		t.Errorf("a partner without url: %v", err)
	}
}
