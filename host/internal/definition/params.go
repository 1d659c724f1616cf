package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/schema"
)

// paramFaults checks the params of an agent against the schema in its module's
// descriptor, if there is one.
func paramFaults(cfg *config.Config, a config.Agent, d *abi.Descriptor) config.Faults {
	role, _ := roleOf(d, a.Name)
	shape := role.Params
	if len(shape) == 0 {
		return nil
	}
	p, err := schema.CompileSettings(d.Name, shape)
	if err != nil {
		return config.Faults{cfg.Fault(fmt.Sprintf("the module %s says of its params what cannot be checked: %v", d.Name, err), "agents", a.Name, "source")}
	}
	params := a.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	var wrong schema.Faults
	switch err := p.Check(params); {
	case err == nil:
		return nameFaults(cfg, a, shape, params)
	case !errors.As(err, &wrong):
		return config.Faults{cfg.ParamFault("agents", a.Name, nil, err.Error(), nil)}
	}
	var faults config.Faults
	for _, f := range wrong {
		steps := config.Steps(f.Path)
		faults = append(faults, cfg.ParamFault("agents", a.Name, steps, f.Reason, siblings(shape, params, steps)))
	}
	return faults
}

// roleOf is what a module says of an agent: of its only one, or of the one with the name.
func roleOf(d *abi.Descriptor, name string) (role abi.AgentDescriptor, found bool) {
	if len(d.Agents) == 1 {
		return d.Agents[0], true
	}
	if i := slices.IndexFunc(d.Agents, func(a abi.AgentDescriptor) bool { return a.Name == name }); i >= 0 {
		return d.Agents[i], true
	}
	return role, false
}

// siblings are the members that the schema allows beside an unknown member, for a
// suggestion. It is nil if the member at steps is known or absent.
func siblings(shape, params json.RawMessage, steps []any) []string {
	if len(steps) == 0 {
		return nil
	}
	var in, at any
	if json.Unmarshal(shape, &in) != nil || json.Unmarshal(params, &at) != nil {
		return nil
	}
	last := len(steps) - 1
	for i, step := range steps {
		node, _ := in.(map[string]any)
		if index, ok := step.(int); ok {
			list, _ := at.([]any)
			if index >= len(list) {
				return nil
			}
			in, at = node["items"], list[index]
			continue
		}
		name, _ := step.(string)
		members, _ := node["properties"].(map[string]any)
		object, _ := at.(map[string]any)
		value, there := object[name]
		if _, known := members[name]; i == last && there && !known {
			return slices.AppendSeq([]string{}, maps.Keys(members))
		}
		in, at = members[name], value
	}
	return nil
}
