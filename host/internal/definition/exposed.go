package definition

import (
	"cmp"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/definition/config"
)

// ExposedAgent is an agent that a definition shows through a gateway.
type ExposedAgent struct {
	Swarm, Name string
	// Description and Version are of its code, else of the swarm.
	Description, Version string
	Entrypoint           bool
	Capabilities         []abi.Capability
	// Effects has, for capabilities that are actions, config.EffectRead or EffectWrite.
	Effects map[string]string
}

// Exposed lists the agents that the definition in force for a tenant shows through a
// gateway, by name.
func (l *Library) Exposed(tenant, gateway string) []ExposedAgent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.damaged[tenant] {
		return nil
	}
	r := l.inForce(tenant)
	var list []ExposedAgent
	for _, a := range r.composition.Agents {
		if slices.Contains(a.Expose, gateway) {
			list = append(list, r.exposed(a))
		}
	}
	slices.SortFunc(list, func(a, b ExposedAgent) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// exposed describes an agent by its module, if that can still be loaded.
func (r *runnable) exposed(a config.Agent) ExposedAgent {
	e := ExposedAgent{Swarm: r.def.Name, Name: a.Name, Version: r.def.Version, Entrypoint: a.EnableEntrypoint}
	m, loaded := r.modules[a.SHA256].(Module)
	if !loaded {
		return e
	}
	d := m.Descriptor()
	e.Description, e.Version = d.Description, cmp.Or(d.Version, e.Version)
	if role, found := roleOf(d, a.Name); found {
		e.Description, e.Capabilities = cmp.Or(role.Description, e.Description), role.Capabilities
	}
	if isToolAgent(a) {
		e.Capabilities, e.Effects = r.actionCapabilities(a.Actions, e.Version)
	}
	return e
}

// toolAgent is the bundled agent that runs the action that a request names.
const toolAgent = "tool"

func isToolAgent(a config.Agent) bool {
	return a.Source.Kind == config.SourceBundled && a.Source.Ref == toolAgent
}

// actionCapabilities describes actions as what their agent can do: a gateway shows each
// with its schema and its effect.
func (r *runnable) actionCapabilities(names []string, version string) (list []abi.Capability, effects map[string]string) {
	effects = map[string]string{}
	for _, tool := range slices.Concat(r.def.Coded, r.def.Human) {
		if slices.Contains(names, tool.Name) {
			effects[tool.Name] = cmp.Or(tool.Effect, config.EffectWrite)
			list = append(list, abi.Capability{ID: tool.Name, Version: version, Description: tool.Description, InputSchema: tool.Parameters})
		}
	}
	slices.SortFunc(list, func(a, b abi.Capability) int { return strings.Compare(a.ID, b.ID) })
	return list, effects
}
