package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/egress"
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// Module runs turns. It is safe for concurrent use.
type Module interface {
	// Digest is the sha256 of its bytes, in hexadecimal.
	Digest() string
	Turn(ctx context.Context, t sandbox.Turn) sandbox.Result
}

// repeats reports whether a module does in a turn that is run again what it did
// before. One that does not says so; what it asks is then compared with the record,
// call by call.
func repeats(m Module) bool {
	r, says := m.(interface{ Repeats() bool })
	return !says || r.Repeats()
}

// Modules finds what turns were recorded on.
type Modules interface {
	// Module returns the module with a digest, which no agent needs to have any
	// more.
	Module(ctx context.Context, digest string) (Module, error)
}

// Agent names an agent of a tenant's swarm. Where definitions have digests it
// names one of a definition instead, whose tenants have it in common.
type Agent struct{ Tenant, Swarm, Definition, Name string }

func agentOf(t *swarm.Turn) Agent {
	if digest := t.Definition(); digest != "" {
		return Agent{Definition: digest, Name: t.Agent().Name}
	}
	key := t.Key()
	return Agent{Tenant: key.Tenant, Swarm: key.Swarm, Name: t.Agent().Name}
}

// Binding is the module an agent runs on, within its limits, and what it may do.
type Binding struct {
	Module Module
	Limits sandbox.Limits
	Allow  Allow
	// Web makes the agent's HTTP requests; one serves all agents. With nil
	// http.fetch is not offered.
	Web Fetcher
	// Models are those of the operator by their names. With nil llm.chat is not
	// offered.
	Models map[string]Model
	// Actions are those with code that it may call, by their names.
	Actions map[string]*Action
	// Forms check the arguments of the actions that people answer, by their names.
	Forms map[string]Form
}

// Form says what is wrong with the arguments of a call, nil for nothing.
type Form func(args []byte) error

// Allow is what an agent is granted beyond mail. The zero value grants nothing.
type Allow struct {
	// KV is the widest scope, empty for none.
	KV swarm.KVKind
	// LLM are the names of models.
	LLM  []string
	HTTP egress.Policy
	// Secrets are the names of those in HTTP.
	Secrets []string
	// RetryInDoubt lets a request be sent again whose answer nobody knows.
	RetryInDoubt bool
}

// Executor runs turns on the modules its agents are bound to.
type Executor struct {
	bindings atomic.Pointer[map[Agent]Binding]
	modules  Modules
	ops      table
	tally    Tally
}

var _ swarm.Executor = (*Executor)(nil)

// NewExecutor returns an executor for the agents given; the map is its own
// from now on. Turns that began on another module than their agent has now are
// run on what modules finds; with nil there is nothing to find.
func NewExecutor(bindings map[Agent]Binding, modules Modules) *Executor {
	x := &Executor{modules: modules, ops: builtin()}
	x.Bind(bindings)
	return x
}

// Bind replaces all that agents are bound to, at once, for turns that begin from
// now on; the map is the executor's own. It is safe for concurrent use.
func (x *Executor) Bind(bindings map[Agent]Binding) { x.bindings.Store(&bindings) }

// Tally has what the turns of this executor have called.
func (x *Executor) Tally() *Tally { return &x.tally }

// Execute runs one turn.
func (x *Executor) Execute(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	b, ok := (*x.bindings.Load())[agentOf(t)]
	if !ok {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "host", Message: "the agent has no module"}}
	}
	b.Limits = b.Limits.Full()
	if past := t.Past(); past != nil {
		var err error
		b, err = x.recorded(ctx, b, past.Header)
		if err == nil && len(past.Given) > 0 && !repeats(b.Module) {
			err = errors.New("a process does not repeat its turn up to where it waited")
		}
		if err != nil {
			return swarm.Outcome{Failure: &swarm.Failure{Cause: swarm.CauseModule, Message: err.Error()}}
		}
	}
	j, err := begin(ctx, t, b)
	if err != nil {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "host", Message: err.Error()}}
	}
	defer j.stop(nil)
	j.tally = &x.tally
	o := &ops{turn: t, table: x.ops, clock: j.clock, now: t.Now, j: j, allow: b.Allow, web: b.Web, models: b.Models, spent: &spent{}}
	o.forms = b.Forms
	o.actions, o.modules, o.cpu, o.seed, o.taken = b.Actions, x.modules, t.CPU(), t.Seed(), &taken{}
	o.spent.recall(t.Past(), t.Metered())
	res := b.Module.Turn(j.life, sandbox.Turn{
		Tenant: t.Key().Tenant, Input: t.Input(), Seed: t.Seed(), Clock: turnClock{j.clock, j}, CPU: t.CPU(), Limits: b.Limits, Cancelled: t.Interrupted(),
		Ops: o,
	})
	return o.spent.charge(j.outcome(o.taken.add(res)), t.Spent())
}

// Bounds of a turn's result.
const (
	maxNotes = 100
	maxNote  = 16 << 10
	// maxStateDepth keeps a state within what every JSON decoder takes, also
	// inside the next turn's input.
	maxStateDepth = 256
)

// parseResult decodes what a turn has written. Nothing is legal and changes
// nothing.
func parseResult(raw []byte) (abi.TurnResult, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return abi.TurnResult{}, nil
	}
	r, err := abi.ParseTurnResult(raw)
	if err != nil {
		return r, fmt.Errorf("the turn's result: %w", err)
	}
	if abi.Deeper(r.State, maxStateDepth) {
		return r, fmt.Errorf("the turn's state is nested deeper than %d levels", maxStateDepth)
	}
	if len(r.State) > abi.MaxState {
		return r, fmt.Errorf("the turn's state has %d bytes, at most %d", len(r.State), abi.MaxState)
	}
	if len(r.Notes) > maxNotes {
		return r, fmt.Errorf("the turn has %d notes, at most %d", len(r.Notes), maxNotes)
	}
	for _, n := range r.Notes {
		if len(n) > maxNote {
			return r, fmt.Errorf("a note of %d bytes, at most %d", len(n), maxNote)
		}
	}
	return r, nil
}
