package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/gateway/amp/amptest"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// TestAMPAgents (M-027, M-029, M-030, M-034, M-035, M-038, M-051, M-052, M-060, M-075, M-079, M-112): an
// agent made with sdk/amp registers and renews, is asked by an agent of ours, asks one while it is
// asked, delegates, shares a context, waits while the host is away, registers anew when it is
// forgotten, and deregisters; by a bearer token, and with signed messages.
func TestAMPAgents(t *testing.T) {
	t.Parallel()
	for language, start := range map[string]func(*testing.T, *meshSite) *meshAgent{"Python": startPython, "TypeScript": startTypeScript} {
		for name, key := range map[string]string{"bearer": "", "signed": "the-key-that-acme-and-hive-share"} {
			t.Run(language+" "+name, func(t *testing.T) {
				t.Parallel()
				m := newMeshSite(t, key)
				p := start(t, m)
				p.wants("registered")
				p.asks()
				m.asks(t)
				p.shares(m)
				m.leaves(t, p)
				if key == "" {
					m.forgets(t, p)
				}
				p.end()
				if got := m.discovers(t); strings.Contains(got, "agent-7") {
					t.Errorf("after its end: %s", got)
				}
			})
		}
	}
}

// TestAMPTypeScript (M-009, M-075, M-112): the TypeScript of sdk/amp compiles, strictly, and its own tests pass.
func TestAMPTypeScript(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), hosttest.SystemProgram(t, "node"), "--test", "amp_mesh_test.mjs")
	cmd.Dir = compileTypeScript(t)
	cmd.Env = append(cmd.Environ(), "SIGNATURES="+filepath.Join(guests.Root(), "spec", "gateways", "amp", "signatures.json"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// asks lets the agent ask an agent of ours, and delegate to it.
func (p *meshAgent) asks() {
	p.t.Helper()
	p.call("discover", `"translation"`, `{}`, `"agent-7"`)
	p.call("negotiate", `"protocol_version"`, `{}`, `1.0`)
	p.call("invoke", `"mail.message", {"body": "hello"}`, `{"agent": "boss"}`, "hello")
	p.call("invoke", `"mail.massage", {}`, `{"agent": "boss"}`, `"CAPABILITY_NOT_FOUND"`)
	p.call("tell", `"greeting"`, `{"agent": "boss", "text": "hi"}`, "null")
	p.write("delegate", `"main-task-123", "mail.message", {"body": "dig"}`, fmt.Sprintf(`{"agent": "boss", "callback": "http://%s/callback"}`, p.address))
	if lines := p.read() + p.read(); !strings.Contains(lines, "called_back") || !strings.Contains(lines, "delegation_id") || !strings.Contains(lines, "dig") {
		p.t.Errorf("the delegation had %s", lines)
	}
}

// asks lets an agent of ours ask the agent, which asks it to answer the second question.
func (m *meshSite) asks(t *testing.T) {
	t.Helper()
	for body, want := range map[string]string{
		`{"capability": "translation", "parameters": {"text": "good morning"}}`:                 "gut Morgen",
		`{"capability": "question-answering", "parameters": {"question": "what is a swarm?"}}`:  "what is a swarm?",
		`{"capability": "translation", "parameters": {"text": 7}}`:                              "[FAILED]",
		`{"capability": "sentiment-analysis", "parameters": {"text": "the agent has no such"}}`: "[CAPABILITY_NOT_FOUND]",
	} {
		got := m.Do(hosttest.AliceKey, "", hosttest.Step{"send_request", hosttest.Args{"target": "agent-7@acme", "subject": "s", "body": body}}, hosttest.Step{"await_message", hosttest.Args{}})
		if !strings.Contains(got, want) {
			t.Errorf("%s: our agent was answered %s", body, got)
		}
	}
}

// shares lets the agent make a context, and read it after the host was started again.
func (p *meshAgent) shares(m *meshSite) {
	p.t.Helper()
	made := p.call("context", `"create"`, `{"context": {"shared_memory": {"stock": 7}}}`, "shared_memory")
	var c struct{ ID string }
	if err := json.Unmarshal([]byte(made), &c); err != nil {
		p.t.Fatal(err)
	}
	p.call("context", `"update"`, fmt.Sprintf(`{"context_id": %q, "if_version": 99, "context": {}}`, c.ID), "VERSION_CONFLICT")
	p.call("context", `"update"`, fmt.Sprintf(`{"context_id": %q, "context": {"shared_memory": {"honey": "much"}}}`, c.ID), "much")
	m.Restart()
	m.target.Store(new(m.URL()))
	if got := p.call("context", `"get"`, fmt.Sprintf(`{"context_id": %q}`, c.ID), "much"); !strings.Contains(got, "stock") {
		p.t.Errorf("the context is %s", got)
	}
}

// leaves stops the host under the agent's question, and starts it again: the agent is still
// registered, and sends heartbeats.
func (m *meshSite) leaves(t *testing.T, p *meshAgent) {
	t.Helper()
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	m.away.Store(0)
	p.write("invoke", fmt.Sprintf(`"mail.message", {"body": %q}`, whileAway), `{"agent": "boss", "timeout": 300}`)
	hosttest.Eventually(t, "the agent finds no host", func() bool { return m.away.Load() > 0 })
	m.Start()
	m.target.Store(new(m.URL()))
	p.wants(whileAway)
	m.beats.Store(0)
	hosttest.Eventually(t, "a heartbeat", func() bool { return m.beats.Load() > 1 })
	p.call("discover", `"translation"`, `{}`, `"agent-7"`)
	m.asks(t)
}

// forgets deregisters the agent, which registers anew.
func (m *meshSite) forgets(t *testing.T, p *meshAgent) {
	t.Helper()
	r := ampControl(t, m.Site, acmeAtHive, "deregistration", amptest.Object{"agent": amptest.Object{"id": "agent-7"}})
	if r.Status != http.StatusOK {
		t.Fatalf("got %d %s", r.Status, r.Text)
	}
	hosttest.Eventually(t, "the agent is registered anew", func() bool { return strings.Contains(m.discovers(t), "agent-7") })
	p.call("discover", `"translation"`, `{}`, `"agent-7"`)
}

// discovers returns what a signed or unsigned discovery answers.
func (m *meshSite) discovers(t *testing.T) string {
	t.Helper()
	q := amptest.New("request", "agent-1", "registry", amptest.Object{"query": amptest.Object{"capabilities": []string{"translation"}}})
	q.Message.Destination.Capability = "discovery"
	if m.key != "" {
		q = signedAMP(t, q, m.key)
	}
	r, err := amptest.Client{URL: m.URL() + "/aip/v1/invoke", Token: acmeAtHive}.Send(q)
	if err != nil || r.Status != http.StatusOK {
		t.Fatalf("discovery: %d %s, %v", r.Status, r.Text, err)
	}
	return r.Text
}
