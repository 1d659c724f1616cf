package definition

import (
	"os"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/swarm"
)

// exposingSwarm shows boss through mcp, and has a second tenant.
var exposingSwarm = strings.Replace(sweptSwarm, "actions = [\"confirm\"]\n", "actions = [\"confirm\"]\nexpose = [\"mcp\"]\n", 1) +
	"[tenants.acme]\n[gateways.mcp]\n[gateways.a2a]\n"

func newExposing(t *testing.T) (h *testLibrary, write func(text string)) {
	t.Helper()
	return newTestLibrary(t, func(cfg *config.Config, _ *LoaderOptions, reread func() (*config.Config, error)) *config.Config {
		if err := os.WriteFile(cfg.File, []byte(exposingSwarm), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := reread()
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	})
}

// shown lists what a tenant exposes through a gateway.
func (h *testLibrary) shown(tenant, gateway string) string {
	var names []string
	for _, a := range h.Exposed(tenant, gateway) {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

// What is exposed is what the definition in force for the tenant says: a reload changes it,
// and one tenant's own definition does not reach another tenant.
func TestExposedIsInForce(t *testing.T) {
	t.Parallel()
	h, write := newExposing(t)
	expect := func(when, own, acme, a2a string) {
		t.Helper()
		if got := []string{h.shown(swarm.DefaultTenant, "mcp"), h.shown("acme", "mcp"), h.shown("acme", "a2a")}; !slices.Equal(got, []string{own, acme, a2a}) {
			t.Errorf("%s: %q", when, got)
		}
	}
	expect("at first", "boss", "boss", "")
	write(strings.Replace(exposingSwarm, "[\"mcp\"]\n", "[\"mcp\", \"a2a\"]\n", 1))
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("after a reload", "boss", "boss", "boss")
	own := strings.NewReplacer(`"boss"`, `"chief"`, `"actions":["confirm"]`, `"actions":["confirm"],"expose":["a2a"]`).Replace(string(described("acme's")))
	if _, err := h.Load(t.Context(), "acme", "eve", []byte(own)); err != nil {
		t.Fatal(err)
	}
	expect("with a tenant's own", "boss", "", "chief")
	write(exposingSwarm)
	if _, err := h.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("after a file that does not cover it", "boss", "boss", "")
	for _, d := range h.All() {
		if i := slices.IndexFunc(d.Agents, func(a swarm.Agent) bool { return a.Name == "boss" }); i < 0 || !slices.Equal(d.Agents[i].Expose, []string{"mcp"}) {
			t.Errorf("the definition of the runtime: %+v", d.Agents)
		}
	}
}

// An exposed agent is described by its module.
func TestExposedIsDescribed(t *testing.T) {
	t.Parallel()
	h, _ := newExposing(t)
	list := h.Exposed(swarm.DefaultTenant, "mcp")
	if len(list) != 1 {
		t.Fatal(list)
	}
	d := h.own.modules[h.own.composition.Agents[0].SHA256].(Module).Descriptor()
	if a := list[0]; a.Swarm != "hive" || !a.Entrypoint || a.Description == "" || a.Description != d.Agents[0].Description && a.Description != d.Description || a.Version != d.Version {
		t.Errorf("%+v, described as %+v", a, d)
	}
}
