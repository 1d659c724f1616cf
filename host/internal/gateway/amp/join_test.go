package amp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp"
	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/gateway/gatewaytest"
)

// secretText is a secret of a partner's table.
type secretText string

// Reveal returns it.
func (s secretText) Reveal() string { return string(s) }

// mesh is a partner's registry.
type mesh struct {
	mu         sync.Mutex
	registered map[string]bool
	// refuses is what each request is answered with, nil for a lease.
	refuses func(m amptest.Message) (status int, code, reason string)
	came    chan amptest.Message
}

// forget removes all registrations, as a registry that was started again.
func (r *mesh) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.registered)
}

func (r *mesh) refuse(with func(m amptest.Message) (status int, code, reason string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = with
}

// answer is the answer to a request.
func (r *mesh) answer(m amptest.Message) (int, amptest.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	agent := idIn(m)
	if r.refuses != nil {
		if status, code, reason := r.refuses(m); status != 0 {
			fault := m.Reply("error", amptest.Error(code, "no"))
			fault.Details()["reason"] = reason
			return status, fault
		}
	}
	switch m.Message.Destination.Capability {
	case "registration":
		r.registered[agent] = true
	case "heartbeat":
		if !r.registered[agent] {
			fault := m.Reply("error", amptest.Error("AUTHENTICATION_FAILED", "who are you?"))
			fault.Details()["reason"] = "NOT_REGISTERED"
			return http.StatusUnauthorized, fault
		}
	case "deregistration":
		delete(r.registered, agent)
	}
	return http.StatusOK, m.Reply("response", amptest.Result(amptest.Object{"agent_id": agent, "lease_seconds": 1}))
}

// idIn is the id of the agent that a request to a registry is about.
func idIn(m amptest.Message) string {
	agent, _ := m.Message.Payload["agent"].(amptest.Object)
	id, _ := agent["id"].(string)
	return id
}

// await waits for a request for a capability of the registry about an agent.
func (r *mesh) await(t *testing.T, capability, agent string) amptest.Message {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case m := <-r.came:
			if m.Message.Destination.Capability == capability && idIn(m) == agent {
				return m
			}
		case <-late:
			t.Fatalf("no %s of %s", capability, agent)
		}
	}
}

// joining is a gateway that runs, whose agents take part in the mesh of acme.
type joining struct {
	*out
	r    *mesh
	mu   sync.Mutex
	list []gateway.Partner
	// stop ends the run.
	stop func()
}

// configure replaces the partners of the configuration.
func (j *joining) configure(list ...gateway.Partner) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = list
}

func (j *joining) configured() []gateway.Partner {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.list
}

func newJoining(t *testing.T) *joining {
	t.Helper()
	j := &joining{r: &mesh{registered: map[string]bool{}, came: make(chan amptest.Message, 10_000)}}
	j.out = newOut(t, func(opt *amp.Options) {
		opt.PublicURL, opt.Token, opt.JoinPause, opt.Partners = "https://hive.example", "AIP", time.Millisecond, j.configured
	})
	j.does(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		m, err := amptest.Parse(text)
		if err != nil || m.Message.Destination.AgentID != "registry" {
			t.Errorf("got %s, %v", text, err)
		}
		status, answer := j.r.answer(m)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer.Text())
		j.r.came <- m
	})
	j.p.Options = map[string]any{"join": true, "join_token": secretText("what-acme-shows")}
	j.configure(j.p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.g.Run(ctx) }()
	j.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(j.stop)
	return j
}

// TestJoins (M-026, M-027): agents of ours register in the mesh of a partner at the start, beat, and
// register again when the registry has forgotten them or when they have changed. One that is not
// exposed any more leaves, and so do all at the end.
func TestJoins(t *testing.T) {
	t.Parallel()
	o := newJoining(t)
	r := o.r
	m := r.await(t, "registration", "echo@hive")
	var p struct {
		Capabilities []struct{ ID string }
		Endpoints    struct{ Invoke, Health string }
		Credential   struct{ Type, Credentials string } `json:"authentication"`
	}
	payload, _ := json.Marshal(m.Message.Payload)
	if err := json.Unmarshal(payload, &p); err != nil || m.Message.Source.AgentID != "echo@hive" || len(p.Capabilities) != 2 || p.Capabilities[0].ID != "text-analysis" ||
		p.Endpoints.Invoke != "https://hive.example/aip/v1/invoke" || p.Endpoints.Health != "https://hive.example/aip/v1/agents/echo@hive/health" ||
		p.Credential.Type != "bearer" || p.Credential.Credentials != "what-acme-shows" {
		t.Errorf("registered by %s, %v", m.Text(), err)
	}
	r.await(t, "registration", "slow@hive")
	r.await(t, "heartbeat", "echo@hive")
	r.forget()
	r.await(t, "registration", "echo@hive")
	o.site.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "new"}, gatewaytest.Echo)
	r.await(t, "registration", "new@hive")
	o.site.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "new", Capabilities: []gateway.Capability{{ID: "translation"}}}, gatewaytest.Echo)
	if again := r.await(t, "registration", "new@hive"); !strings.Contains(again.Text(), "translation") {
		t.Errorf("registered by %s", again.Text())
	}
	o.site.rt.Hide("default", "hive", "new")
	r.await(t, "deregistration", "new@hive")
	o.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.registered) > 0 {
		t.Errorf("still registered: %v", r.registered)
	}
}

// TestJoinFails (M-026): a registry that refuses is asked again, and ping has why; one without
// heartbeats gets registrations in their place.
func TestJoinFails(t *testing.T) {
	t.Parallel()
	o := newJoining(t)
	r := o.r
	r.await(t, "registration", "slow@hive")
	r.refuse(func(m amptest.Message) (int, string, string) {
		if m.Message.Destination.Capability == "discovery" {
			return 0, "", ""
		}
		return http.StatusForbidden, "AUTHENTICATION_FAILED", "FORBIDDEN"
	})
	r.await(t, "heartbeat", "echo@hive")
	r.await(t, "heartbeat", "slow@hive") // its round ends, and another one begins
	r.await(t, "heartbeat", "slow@hive")
	if _, err := o.g.Discover(t.Context(), o.p); err == nil || !strings.Contains(err.Error(), "[AUTHENTICATION_FAILED] no") {
		t.Errorf("ping says %v", err)
	}
	r.refuse(func(m amptest.Message) (int, string, string) {
		if m.Message.Destination.Capability == "heartbeat" {
			return http.StatusNotFound, "CAPABILITY_NOT_FOUND", ""
		}
		return 0, "", ""
	})
	r.await(t, "registration", "slow@hive")
	r.await(t, "registration", "slow@hive")
}

// TestJoinEnds (M-026): agents leave the mesh of a partner whose table has join no longer, and register
// again when it has.
func TestJoinEnds(t *testing.T) {
	t.Parallel()
	o := newJoining(t)
	o.r.await(t, "registration", "slow@hive")
	left := o.p
	left.Options = map[string]any{"join": false}
	o.configure(left)
	o.r.await(t, "deregistration", "echo@hive")
	o.r.await(t, "deregistration", "slow@hive")
	o.configure(o.p)
	o.r.await(t, "registration", "slow@hive")
	o.configure()
	o.r.await(t, "deregistration", "slow@hive")
}
