package turn

import "fmt"

// LoadStep is where loading a module or a program stopped.
type LoadStep string

// The steps, in order.
const (
	StepRead     LoadStep = "read"
	StepDigest   LoadStep = "digest"
	StepAdmit    LoadStep = "admit"
	StepABI      LoadStep = "abi"
	StepMeter    LoadStep = "meter"
	StepCompile  LoadStep = "compile"
	StepDescribe LoadStep = "describe"
	StepStart    LoadStep = "start" // of a process, before it is described
)

// LoadError is why a module or a program is refused, and what to do about it.
type LoadError struct {
	Name string
	Step LoadStep
	// Key is the key of swarm.toml that decides, if one does: a cap under
	// limits.module, or sha256 of the agent.
	Key string
	// Program is true for a program, false for a module.
	Program bool
	Err     error
}

// Error renders the refusal.
func (e *LoadError) Error() string {
	what := "module"
	if e.Program {
		what = "program"
	}
	return fmt.Sprintf("%s %s refused (%s): %v", what, e.Name, e.Step, e.Err)
}

// Unwrap returns the reason.
func (e *LoadError) Unwrap() error { return e.Err }
