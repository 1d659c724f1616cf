package host

import (
	"fmt"

	"skep/host/internal/capability"
	"skep/host/internal/config"
	"skep/host/internal/schema"
)

// FormFaults lists the parameters of actions for people that cannot be checked.
func FormFaults(cfg *config.Config) (faults config.Faults) {
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

// formsOf check what people are asked. A definition of earlier days may have what
// cannot be checked: its tasks go on as they began.
func formsOf(cfg *config.Config) map[string]capability.Form {
	forms := map[string]capability.Form{}
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
