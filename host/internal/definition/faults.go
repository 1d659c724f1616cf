package definition

import (
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

func memoryFaults(cfg *config.Config, g grantee, m Module) config.Faults {
	need := config.Size(m.MinMemory())
	if need <= g.limits.Memory {
		return nil
	}
	return config.Faults{cfg.Fault(fmt.Sprintf(
		"the module starts with %v of memory, the %s may have %v; raise %s limits.memory", need, strings.TrimSuffix(g.section, "s"), g.limits.Memory, g.table()),
		g.section, g.name, "limits", "memory")}
}
