package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/schema"
	"skep/host/internal/turn/capability"
)

// ActionFaults lists why an action cannot run on a module as the file has it.
func ActionFaults(cfg *config.Config, a config.Action, m Module) config.Faults {
	faults := append(missingGrants(cfg, actionGrantee(a), m.Descriptor()), memoryFaults(cfg, actionGrantee(a), m)...)
	d, ok := findAction(m, a.Name)
	if !ok {
		return append(faults, cfg.Fault(fmt.Sprintf("the module %s has no action %q%s", m.Descriptor().Name, a.Name, actionNames(m)), "actions", a.Name, "source"))
	}
	if _, err := schema.CompileParams(a.Name, parametersOf(a, d)); err != nil {
		faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v", a.Name, err), "actions", a.Name))
	}
	return faults
}

// findAction finds an action in the descriptor of its module.
func findAction(m capability.Module, name string) (abi.ActionDescriptor, bool) {
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

// actionNames lists the actions of a module, as the end of an error text.
func actionNames(m Module) string {
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

// parametersOf are the parameters in the file, or else in the module's descriptor.
func parametersOf(a config.Action, d abi.ActionDescriptor) json.RawMessage {
	switch {
	case len(a.Parameters) > len("{}"):
		return a.Parameters
	case len(d.Parameters) > 0:
		return d.Parameters
	}
	return json.RawMessage(`{"type":"object"}`)
}

// effectOf is the effect of an action as its tool has it: what the file has, or else what its
// code declares; only reading is shown.
func effectOf(a config.Action, declared string) string {
	if cmp.Or(a.Effect, declared) == config.EffectRead {
		return config.EffectRead
	}
	return ""
}

// toolOf is the tool that callers of a coded action see.
func toolOf(a config.Action, m capability.Module) abi.Tool {
	d, _ := findAction(m, a.Name)
	tool := abi.Tool{Name: a.Name, Description: a.Description, Parameters: parametersOf(a, d), Effect: effectOf(a, d.Effect)}
	if tool.Description == "" {
		tool.Description = d.Description
	}
	return tool
}

// bindActions makes the actions that agents and other actions call, each with its grants.
func (r *runnable) bindActions(cfg *config.Config, res resources) map[string]*capability.Action {
	all := map[string]*capability.Action{}
	for _, a := range codedActions(cfg.Actions) {
		m := r.modules[a.SHA256]
		if m == nil {
			m = missingModule{a.SHA256, fmt.Errorf("the module of action %q is not there", a.Name)}
		}
		tool := toolOf(a, m)
		bound := &capability.Action{
			Name: a.Name, Timeout: a.Timeout, Params: a.Params, Calls: a.Actions, Check: checkOf(a.Name, tool.Parameters),
			Binding: capability.Binding{
				Module: m, Limits: TurnLimits(a.Limits).WithDefaults(), Allow: allowOf(cfg, actionGrantee(a)), Fetcher: res.web, Models: res.models,
			},
		}
		all[a.Name] = bound
		r.def.Coded = append(r.def.Coded, tool)
	}
	for _, a := range cfg.Actions {
		switch a.Source.Kind {
		case config.SourceBuiltin:
			all[a.Name] = bindFileAction(a, res.files[a.Name])
			r.def.Coded = append(r.def.Coded, fileTool(a))
		case config.SourceGateway:
			all[a.Name] = bindGatewayAction(a, res.act)
			r.def.Coded = append(r.def.Coded, gatewayTool(a))
		case config.SourceMCP:
			all[a.Name] = bindTool(a, res.tools[a.Source.Ref])
			r.def.Coded = append(r.def.Coded, pinnedTool(a))
		}
	}
	for _, a := range codedActions(cfg.Actions) {
		all[a.Name].Actions = selectActions(all, a.Actions)
	}
	return all
}

// checkOf makes the check of a call's arguments.
func checkOf(name string, parameters json.RawMessage) capability.ArgsCheck {
	p, err := schema.CompileParams(name, parameters)
	if err != nil {
		return func([]byte) error { return err }
	}
	return p.Check
}

func selectActions(all map[string]*capability.Action, names []string) map[string]*capability.Action {
	some := map[string]*capability.Action{}
	for _, name := range names {
		if a := all[name]; a != nil {
			some[name] = a
		}
	}
	return some
}
