package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/schema"
)

// moduleKey names the module of an action beside those of agents, whose names have
// no slash.
func moduleKey(action string) string { return "actions/" + action }

// holderOf names whose module a key stands for.
func holderOf(key string) string {
	if action, ok := strings.CutPrefix(key, moduleKey("")); ok {
		return fmt.Sprintf("action %q", action)
	}
	return fmt.Sprintf("agent %q", key)
}

// holder is who is granted something in a file: an agent or an action.
type holder struct {
	section, name string
	allow         config.Allow
	limits        config.AgentLimits
}

func agentHolder(a config.Agent) holder { return holder{"agents", a.Name, a.Allow, a.Limits} }

func actionHolder(a config.Action) holder { return holder{"actions", a.Name, a.Allow, a.Limits} }

// table is its table in the file.
func (h holder) table() string { return "[" + h.section + "." + h.name + "]" }

// holders are all of a file, actions that people answer left out.
func holders(cfg *config.Config) (all []holder) {
	for _, a := range cfg.Agents {
		all = append(all, agentHolder(a))
	}
	for _, a := range coded(cfg.Actions) {
		all = append(all, actionHolder(a))
	}
	return all
}

// coded are the actions that have code.
func coded(actions []config.Action) []config.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a config.Action) bool { return !a.Source.Kind.Coded() })
}

// asAgent is what loading a module takes of an action.
func asAgent(a config.Action) config.Agent {
	return config.Agent{Name: a.Name, Source: a.Source, SHA256: a.SHA256, Trusted: a.Trusted, Readable: a.Readable, Limits: a.Limits}
}

// ActionFaults lists why an action cannot run on a module as the file has it.
func ActionFaults(cfg *config.Config, a config.Action, m Module) config.Faults {
	faults := append(missingGrants(cfg, actionHolder(a), m.Descriptor()), memoryFaults(cfg, actionHolder(a), m)...)
	d, ok := exported(m, a.Name)
	if !ok {
		return append(faults, cfg.Fault(fmt.Sprintf("the module %s has no action %q%s", m.Descriptor().Name, a.Name, names(m)), "actions", a.Name, "source"))
	}
	if _, err := schema.CompileParams(a.Name, parametersOf(a, d)); err != nil {
		faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v", a.Name, err), "actions", a.Name))
	}
	return faults
}

// exported finds an action in the descriptor of its module.
func exported(m capability.Module, name string) (abi.ActionDescriptor, bool) {
	d, ok := m.(interface{ Descriptor() *abi.Descriptor })
	if !ok {
		return abi.ActionDescriptor{}, false
	}
	all := d.Descriptor().Actions
	i := slices.IndexFunc(all, func(a abi.ActionDescriptor) bool { return a.Name == name })
	if i < 0 {
		return abi.ActionDescriptor{}, false
	}
	return all[i], true
}

// names lists what a module has.
func names(m Module) string {
	text := ""
	for i, a := range m.Descriptor().Actions {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %q", a.Name)
	}
	if text == "" {
		return "; it has none"
	}
	return "; it has" + text
}

// parametersOf are those of the file, where it has some, or the module's.
func parametersOf(a config.Action, d abi.ActionDescriptor) json.RawMessage {
	switch {
	case len(a.Parameters) > len("{}"):
		return a.Parameters
	case len(d.Parameters) > 0:
		return d.Parameters
	}
	return json.RawMessage(`{"type":"object"}`)
}

// toolOf is an action as its callers are shown it.
func toolOf(a config.Action, m capability.Module) abi.Tool {
	d, _ := exported(m, a.Name)
	tool := abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, d)}
	if tool.Description == "" {
		tool.Description = d.Description
	}
	return tool
}

// bindActions makes what agents and actions call, with what is granted to each.
func (c *composed) bindActions(cfg *config.Config, out outside) map[string]*capability.Action {
	all := map[string]*capability.Action{}
	for _, a := range coded(cfg.Actions) {
		m := c.modules[a.SHA256]
		if m == nil {
			m = lost{a.SHA256, fmt.Errorf("the module of action %q is not there", a.Name)}
		}
		tool := toolOf(a, m)
		bound := &capability.Action{
			Name: a.Name, Timeout: a.Timeout, Params: a.Params, Calls: a.Actions, Check: checks(a.Name, tool.Parameters),
			Binding: capability.Binding{
				Module: m, Limits: TurnLimits(a.Limits).Full(), Allow: allow(cfg, actionHolder(a)), Web: out.web, Models: out.models,
			},
		}
		all[a.Name] = bound
		c.def.Coded = append(c.def.Coded, tool)
	}
	for _, a := range cfg.Actions {
		switch a.Source.Kind {
		case config.SourceBuiltin:
			all[a.Name] = bindFiles(a, out.files[a.Name])
			c.def.Coded = append(c.def.Coded, fileTool(a))
		case config.SourceMCP:
			all[a.Name] = bindTool(a, out.tools[a.Source.Ref])
			c.def.Coded = append(c.def.Coded, pinnedTool(a))
		}
	}
	for _, a := range coded(cfg.Actions) {
		all[a.Name].Actions = calledBy(all, a.Actions)
	}
	return all
}

// checks makes what checks the arguments of calls.
func checks(name string, parameters json.RawMessage) capability.Form {
	p, err := schema.CompileParams(name, parameters)
	if err != nil {
		return func([]byte) error { return err }
	}
	return p.Check
}

func calledBy(all map[string]*capability.Action, names []string) map[string]*capability.Action {
	some := map[string]*capability.Action{}
	for _, name := range names {
		if a := all[name]; a != nil {
			some[name] = a
		}
	}
	return some
}

// loadActions loads the modules of a file's actions.
func (h *Host) loadActions(ctx context.Context, cfg *config.Config, modules map[string]Module) (faults config.Faults, err error) {
	for _, a := range coded(cfg.Actions) {
		m, err := h.loadModule(ctx, "action", asAgent(a))
		if err != nil {
			return nil, err
		}
		modules[moduleKey(a.Name)] = m
		faults = append(faults, ActionFaults(cfg, a, m)...)
	}
	return faults, nil
}
