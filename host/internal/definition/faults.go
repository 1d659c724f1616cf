package definition

import (
	"cmp"
	"fmt"
	"strings"

	"skep/abi"
	"skep/host/internal/definition/config"
)

// Faults lists what is wrong with a file beyond its grammar, as far as no module need be
// loaded. Private are the directories of the host's own, which agents must not reach.
func Faults(cfg *config.Config, private ...string) config.Faults {
	faults := append(grantFaults(cfg), modelFaults(cfg)...)
	faults = append(faults, fileFaults(cfg, private...)...)
	faults = append(faults, partnerFaults(cfg)...)
	faults = append(faults, formFaults(cfg)...)
	faults = append(faults, programFaults(cfg)...)
	return append(faults, ToolFaults(cfg)...)
}

// AgentFaults lists why an agent cannot run on a module as the file has it.
func AgentFaults(cfg *config.Config, a config.Agent, m Module) config.Faults {
	faults := append(missingGrants(cfg, agentGrantee(a), m.Descriptor()), memoryFaults(cfg, agentGrantee(a), m)...)
	faults = append(faults, roleFaults(cfg, a, m.Descriptor())...)
	faults = append(faults, toolAgentFaults(cfg, a)...)
	return append(faults, paramFaults(cfg, a, m.Descriptor())...)
}

// roleFaults refuses an agent on a bundled module that has actions alone. A module of
// another source may serve agents that its descriptor does not list.
func roleFaults(cfg *config.Config, a config.Agent, d *abi.Descriptor) config.Faults {
	if a.Source.Kind != config.SourceBundled || len(d.Agents) > 0 || len(d.Actions) == 0 {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf("the module %s %s has actions and no agent; use it as in [actions.%s] source = %q",
		d.Name, d.Version, d.Actions[0].Name, string(config.SourceBundled)+":"+a.Source.Ref), "agents", a.Name, "source")}
}

// toolAgentFaults refuses an agent that runs actions, and has none.
func toolAgentFaults(cfg *config.Config, a config.Agent) config.Faults {
	if !isToolAgent(a) || len(a.Actions) > 0 {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf("agents.%s runs the actions that it has, and has none; add to [agents.%[1]s]: actions = [%q]", a.Name, cmp.Or(anyAction(cfg), "NAME")), "agents", a.Name)}
}

// anyAction is the name of an action of the file, empty for none.
func anyAction(cfg *config.Config) string {
	for _, a := range cfg.Actions {
		return a.Name
	}
	return ""
}

func memoryFaults(cfg *config.Config, g grantee, m Module) config.Faults {
	need := config.Size(m.MinMemory())
	if need <= g.limits.Memory {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf(
		"the module starts with %v of memory, the %s may have %v; raise %s limits.memory", need, strings.TrimSuffix(g.section, "s"), g.limits.Memory, g.table()),
		g.section, g.name, "limits", "memory")}
}
