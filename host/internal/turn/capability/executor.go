package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/host/internal/turn/egress"
)

// Module runs turns. It is safe for concurrent use.
type Module interface {
	// Digest is the sha256 of the module's bytes, in hexadecimal.
	Digest() string
	Turn(ctx context.Context, t turn.Turn) turn.Result
}

// isRepeatable reports whether a module repeats a turn exactly, as all do whose method
// Repeats is absent or returns true. The requests of the others are compared with the
// record, call by call.
func isRepeatable(m Module) bool {
	r, ok := m.(interface{ Repeats() bool })
	return !ok || r.Repeats()
}

// Modules finds the modules of recorded turns.
type Modules interface {
	// Module returns the module with a digest, even if no agent uses it any more. It stays
	// loaded until ctx ends. An error is a [*ModuleGoneError] for a module that this host cannot
	// run; any other may pass.
	Module(ctx context.Context, digest string) (Module, error)
}

// ModuleGoneError is why a host cannot run a module: there is no sound copy, or it is refused.
type ModuleGoneError struct{ Err error }

func (e *ModuleGoneError) Error() string { return e.Err.Error() }

func (e *ModuleGoneError) Unwrap() error { return e.Err }

// Agent names an agent of a tenant's swarm. If the definition has a digest, it names an
// agent of the definition, which tenants share.
type Agent struct{ Tenant, Swarm, Definition, Name string }

func agentOf(t *swarm.Turn) Agent {
	if digest := t.Definition(); digest != "" {
		return Agent{Definition: digest, Name: t.Agent().Name}
	}
	key := t.Key()
	return Agent{Tenant: key.Tenant, Swarm: key.Swarm, Name: t.Agent().Name}
}

// Binding is the module of an agent with its limits and grants.
type Binding struct {
	Module Module
	Limits turn.Limits
	Allow  Allow
	// Fetcher makes the agent's HTTP requests; all agents share one. If nil, http.fetch is
	// not offered.
	Fetcher Fetcher
	// Models are the operator's models by name. If nil, llm.chat is not offered.
	Models map[string]Model
	// Actions are the actions with code that it may call, by name.
	Actions map[string]*Action
	// ArgsChecks check the arguments of breakpoint actions, by name.
	ArgsChecks map[string]ArgsCheck
}

// ArgsCheck returns an error for invalid arguments of a call.
type ArgsCheck func(args []byte) error

// Allow are the grants of an agent beyond mail. The zero value grants nothing.
type Allow struct {
	// KV is the widest scope, empty for none.
	KV swarm.KVKind
	// LLM are the names of granted models.
	LLM  []string
	HTTP egress.Policy
	// Secrets are the names of the secrets in HTTP.
	Secrets []string
	// RetryInDoubt allows a second attempt for a request whose outcome is unknown.
	RetryInDoubt bool
}

// Executor runs turns on the modules that its agents are bound to.
type Executor struct {
	bindings     atomic.Pointer[map[Agent]Binding]
	modules      Modules
	recipe       string
	ops          table
	counter      OpCounter
	waitingTurns WaitingTurns
}

var _ swarm.Executor = (*Executor)(nil)

// NewExecutor returns an executor and takes ownership of the map. A turn that began on
// another module than its agent has now runs on a module from modules, which may be nil.
// The recipe names everything besides module, limits and input that decides how a turn
// runs; a turn recorded under another recipe is not repeated.
func NewExecutor(bindings map[Agent]Binding, modules Modules, recipe string) *Executor {
	x := &Executor{modules: modules, recipe: recipe, ops: builtinOps()}
	x.waitingTurns.Bound(math.MaxInt, HibernateAfter)
	x.Bind(bindings)
	return x
}

// Bind replaces all bindings at once for turns that begin later, and takes ownership of
// the map. It is safe for concurrent use.
func (x *Executor) Bind(bindings map[Agent]Binding) { x.bindings.Store(&bindings) }

// OpCounter counts the op calls of this executor's turns.
func (x *Executor) OpCounter() *OpCounter { return &x.counter }

// WaitingTurns bounds the turns that keep their sandbox while they wait; at first all do.
func (x *Executor) WaitingTurns() *WaitingTurns { return &x.waitingTurns }

// Execute runs one turn.
func (x *Executor) Execute(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	b, ok := (*x.bindings.Load())[agentOf(t)]
	costs := &requestCosts{}
	before, _ := t.Hibernation().(*hibernation)
	if before != nil {
		defer before.close()
		costs = before.costs
	}
	fail := func(cause, text string) swarm.Outcome {
		return costs.charge(swarm.Outcome{Failure: &swarm.Failure{Cause: cause, Message: text}}, t.Spent())
	}
	if !ok {
		return fail("host", "the agent has no module")
	}
	b.Limits = b.Limits.WithDefaults()
	if past := t.PriorAttempt(); past != nil {
		var err error
		b, err = x.recordedBinding(ctx, t, b)
		if err == nil && len(past.Answers) > 0 && !isRepeatable(b.Module) {
			err = errors.New("a process does not repeat its turn up to where it waited")
		}
		if errors.Is(err, errModuleUnread) {
			return fail("host", err.Error())
		}
		if err != nil {
			return fail(swarm.CauseModule, err.Error())
		}
	}
	j, err := openJournal(ctx, t, b, x.recipe)
	if err != nil {
		return fail("host", err.Error())
	}
	defer j.stop(nil)
	j.counter, j.agent, j.shapes = &x.counter, t.Agent().Name, newCallShapes(t, j.now)
	o := &ops{turn: t, table: x.ops, clock: j.clock, now: t.Now, j: j, allow: b.Allow, fetcher: b.Fetcher, models: b.Models, costs: costs}
	o.argsChecks = b.ArgsChecks
	o.actions, o.modules, o.cpu, o.seed, o.actionUsage = b.Actions, x.modules, t.CPU(), t.Seed(), &actionUsage{}
	if isRepeatable(b.Module) && before.mayHibernate(b.Limits) {
		o.waitingTurns = &x.waitingTurns
	}
	if before != nil {
		j.wakeFrom(before)
		o.costs.searches = 0 // they are repeated
	} else {
		o.costs.loadPrior(t.PriorAttempt(), t.MeteredUsage())
	}
	res := b.Module.Turn(j.ctx, turn.Turn{
		Tenant: t.Key().Tenant, Input: t.Input(), Seed: t.Seed(), Clock: turnClock{j.clock, j}, CPU: t.CPU(), Limits: b.Limits, Cancelled: j.cancelledAfterRepeat(t.Interrupted()),
		Ops: o,
	})
	return o.costs.charge(j.turnOutcome(o.actionUsage.add(res)), t.Spent())
}

// Limits of a turn's result.
const (
	maxNotes = 100
	maxNote  = 16 << 10
	// maxStateDepth bounds the nesting of a state, so that every JSON decoder accepts it
	// inside the next turn's input.
	maxStateDepth = 256
)

// parseResult decodes the output of a turn. Empty output is valid and changes nothing.
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
