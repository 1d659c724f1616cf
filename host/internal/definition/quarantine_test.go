package definition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/quarantine"
	"skep/host/internal/swarm"
)

// loadAgents loads a definition of agents that all run on the script module.
func (h *testLibrary) loadAgents(t *testing.T, names ...string) error {
	t.Helper()
	var agents []string
	for _, name := range names {
		agents = append(agents, fmt.Sprintf(`"%s":{"source":"file:script.wasm","enable_entrypoint":true,"can_complete_tasks":true}`, name))
	}
	_, err := h.Load(t.Context(), swarm.DefaultTenant, "ada",
		fmt.Appendf(nil, `{"swarm":{"name":"hive","entrypoint":"%s"},"agents":{%s}}`, names[0], strings.Join(agents, ",")))
	return err
}

// confine puts an agent of the file into quarantine as the runtime does.
func (h *testLibrary) confine(t *testing.T, agent string) {
	t.Helper()
	q := h.Library.Quarantine()
	if err := q.Confine(swarm.DefaultTenant, "hive", agent, h.inForce(swarm.DefaultTenant).digest, "a test"); err != nil {
		t.Fatal(err)
	}
}

func wantConfined(t *testing.T, err error, agent string) {
	t.Helper()
	if !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("agent %q of the same module is in quarantine", agent)) {
		t.Error(err)
	}
}

// An agent does not leave quarantine under another name, until it is released.
func TestQuarantineFollowsModule(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	h.confine(t, "boss")
	if got := h.opt.Quarantine.Agents(); len(got) != 1 || got[0].Module != h.own.composition.Agents[0].SHA256 {
		t.Errorf("%+v", got)
	}
	wantConfined(t, h.loadAgents(t, "another"), "boss")
	if err := h.loadAgents(t, "boss"); err != nil {
		t.Error(err)
	}
	if _, err := h.opt.Quarantine.Release(t.Context(), quarantine.Agent{Tenant: swarm.DefaultTenant, Swarm: "hive", Name: "boss"}); err != nil {
		t.Fatal(err)
	}
	if err := h.loadAgents(t, "another"); err != nil {
		t.Error(err)
	}
}

// Agents that have run on the module beside the one in quarantine stay, and no
// other tenant or swarm is bound by it.
func TestQuarantineSparesOthers(t *testing.T) {
	t.Parallel()
	h, _ := newTestLibrary(t)
	if err := h.loadAgents(t, "one", "two", "three"); err != nil {
		t.Fatal(err)
	}
	h.confine(t, "two")
	module := h.own.composition.Agents[0].SHA256
	for _, a := range []quarantine.Agent{{Tenant: "acme", Swarm: "hive", Name: "other"}, {Tenant: swarm.DefaultTenant, Swarm: "depot", Name: "other"}} {
		if err := h.opt.Quarantine.Confine(t.Context(), a, module, "a test", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.loadAgents(t, "three", "two", "one", "boss"); err != nil {
		t.Error("the same names:", err)
	}
	wantConfined(t, h.loadAgents(t, "one", "four"), "two")
	if err := h.loadAgents(t, "one"); err != nil {
		t.Error("one name:", err)
	}
	wantConfined(t, h.loadAgents(t, "one", "three"), "two")
	if err := h.loadAgents(t, "two"); err != nil {
		t.Error("the one in quarantine:", err)
	}
}

// An entry that does not say on what its agent ran stands for what the agent runs
// on now, and for no agent without a module.
func TestRanOn(t *testing.T) {
	t.Parallel()
	known := []config.Agent{{Name: "math", SHA256: "m"}, {Name: "human"}}
	for _, c := range []struct {
		agent, entry, module string
		want                 bool
	}{
		{"math", "m", "m", true},
		{"math", "older", "m", false},
		{"math", "", "m", true},
		{"gone", "", "m", false},
		{"math", "", "", false},
		{"human", "", "", false},
		{"math", "m", "", false},
	} {
		q := quarantine.Confined{Agent: quarantine.Agent{Name: c.agent}, Module: c.entry}
		if got := ranOn(q, c.module, known); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
