package definition

import (
	"fmt"

	"skep/host/internal/definition/config"
	"skep/host/internal/schema"
	"skep/host/internal/turn/capability"
)

// formFaults lists the actions for people whose parameters are no usable schema.
func formFaults(cfg *config.Config) (faults config.Faults) {
	for _, a := range cfg.Actions {
		if a.Source.Kind != config.SourceHuman {
			continue
		}
		if _, err := schema.CompileParams(a.Name, a.Parameters); err != nil {
			faults = append(faults, cfg.Fault(fmt.Sprintf("the parameters of action %q cannot be checked: %v", a.Name, err), "actions", a.Name, "parameters"))
		}
	}
	return faults
}

// formsOf makes the checks of questions to people, by action. A stored definition may
// have a schema that is unusable now; its action has no check, so that its tasks go on.
func formsOf(cfg *config.Config) map[string]capability.ArgsCheck {
	forms := map[string]capability.ArgsCheck{}
	for _, a := range cfg.Actions {
		if a.Source.Kind != config.SourceHuman {
			continue
		}
		if p, err := schema.CompileParams(a.Name, a.Parameters); err == nil {
			forms[a.Name] = p.Check
		}
	}
	return forms
}
