package rest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/api/rest"
	"skep/host/internal/definition/plan"
	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
)

// fakeRegistry is a registry without network. A swarm called fixed is the
// operator's.
type fakeRegistry struct {
	mu      sync.Mutex
	entries []registry.Entry
	asked   []registry.Request
	err     error
}

func newFakeRegistry(known ...registry.Entry) *fakeRegistry { return &fakeRegistry{entries: known} }

// add puts others in the place of what is known.
func (p *fakeRegistry) add(entries ...registry.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries = entries
}

func (p *fakeRegistry) Entries() []registry.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.entries)
}

func (p *fakeRegistry) Register(_ context.Context, q registry.Request) (registry.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	switch {
	case p.err != nil:
		return registry.Entry{}, p.err
	case q.Name == "fixed":
		return registry.Entry{}, &swarm.Refusal{Kind: swarm.ErrConflict, Text: "swarm 'fixed' stands in swarm.toml"}
	case !strings.HasPrefix(q.BaseURL, "https://"):
		return registry.Entry{}, &swarm.Refusal{Kind: swarm.ErrInvalid, Text: "base_url must be as in https://depot.example"}
	}
	e := registry.Entry{Name: q.Name, BaseURL: q.BaseURL, Volatile: q.Volatile}
	if !q.Volatile {
		e.TokenRef = "${" + registry.TokenVariable(q.Name) + "}"
	}
	return e, nil
}

func (p *fakeRegistry) Remove(_ context.Context, name string, operator bool) (registry.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return registry.Entry{}, p.err
	case name == "fixed":
		return registry.Entry{}, &swarm.Refusal{Kind: swarm.ErrConflict, Text: "swarm 'fixed' stands in swarm.toml"}
	case name == "nobody":
		return registry.Entry{}, &swarm.Refusal{Kind: swarm.ErrNotFound, Text: "swarm 'nobody' is not registered"}
	case name == "bound" && !operator:
		return registry.Entry{}, &swarm.Refusal{Kind: swarm.ErrConflict, Text: "only an operator removes it"}
	}
	return registry.Entry{Name: name, BaseURL: "https://x.example"}, nil
}

// Ping finds every swarm well but the one called silent.
func (p *fakeRegistry) Ping(_ context.Context, name string) (registry.Entry, error) {
	e := registry.Entry{Name: name, BaseURL: "https://x.example", Version: "1.3"}
	switch {
	case p.err != nil:
		return e, p.err
	case name == "nobody":
		return e, &swarm.Refusal{Kind: swarm.ErrNotFound, Text: "swarm 'nobody' is not registered"}
	case name == "silent":
		e.Version, e.LastError = "", "it answers 502 Bad Gateway"
	default:
		latency := 0.25
		e.Active, e.Latency, e.LastSeen = true, &latency, time.Unix(1e9, 0)
	}
	return e, nil
}

// fakeDefinitions takes every definition but those that name programs.
type fakeDefinitions struct{ calls *[]string }

func (s fakeDefinitions) Load(_ context.Context, tenant, by string, definition []byte) (string, error) {
	if s.calls != nil {
		*s.calls = append(*s.calls, tenant+" "+by+" "+string(definition))
	}
	if strings.Contains(string(definition), "exec:") {
		return "", &swarm.Refusal{Kind: swarm.ErrInvalid, Text: "agents.boss.source: exec: is for the operator's file"}
	}
	return "hive", nil
}

// wrapper is the body of a forward from swarm depot. edits are pairs of a member
// and its value; the value none removes the member.
func wrapper(edits ...any) string {
	w := obj{
		"message_id": "1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11", "source_swarm": "depot", "target_swarm": "hive",
		"timestamp": "2026-03-01T09:31:00.000000+00:00", "msg_type": "request", "auth_token": "", "metadata": obj{},
		"task_owner": "user:carol@depot", "task_contributors": []string{"user:carol@depot"},
		"payload": obj{
			"task_id": "5b0c1b0a-52a3-4f5e-8f64-3d1e9a7c2e90", "request_id": "0f3a7a34-9d0e-4f0c-9a55-6a6a0a3b8f21",
			"sender":    obj{"address_type": "agent", "address": "chief@depot"},
			"recipient": obj{"address_type": "agent", "address": "boss@hive"},
			"subject":   "Stock check", "body": "Do we have valve 17?",
		},
	}
	for i := 0; i+1 < len(edits); i += 2 {
		if name := edits[i].(string); edits[i+1] == none {
			delete(w, name)
		} else {
			w[name] = edits[i+1]
		}
	}
	return text(obj{"message": w})
}

// none stands for a member that is not there.
const none = "\x00none"

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// definitionRuntime is a runtime with a definition and nothing else.
type definitionRuntime struct {
	failingRuntime
	def *swarm.Definition
}

func (w definitionRuntime) Definition(string, string) (*swarm.Definition, bool) { return w.def, true }

func newHandler(t *testing.T, rt rest.Runtime) *rest.Handler {
	return rest.New(rt, newKeys(t), rest.Options{Swarm: "hive", Debug: true})
}

func (s fakeDefinitions) Unload(_ context.Context, tenant string) error {
	if s.calls != nil {
		*s.calls = append(*s.calls, tenant+" unloads")
	}
	return nil
}

func (s fakeDefinitions) InForce(string) rest.InForce {
	return rest.InForce{
		Swarm: "hive", Digest: strings.Repeat("1f", 32), Origin: "network", By: "default/admin:ada", At: time.Unix(1e9, 0),
		Definition: json.RawMessage(`{"swarm":{"name":"hive"},"agents":{}}`),
	}
}

// fakeConfigFile is a file that a host could read again.
type fakeConfigFile struct{ err error }

func (f fakeConfigFile) Plan(context.Context) ([]plan.Change, error) {
	if f.err != nil {
		return nil, f.err
	}
	return []plan.Change{{Kind: "grant", Name: "boss.kv", Change: plan.Changed, Widened: true, Before: "task", After: "agent"}}, nil
}

func (f fakeConfigFile) Reload(ctx context.Context) ([]plan.Change, error) { return f.Plan(ctx) }
