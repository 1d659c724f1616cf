package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// ActionModule is a [Module] that also runs actions.
type ActionModule interface {
	Module
	Action(ctx context.Context, t turn.Turn) turn.Result
}

// Action is an action with code, as its callers see it. It is immutable.
type Action struct {
	Name string
	// Binding is the module of the action and what it may do itself. The module is an
	// [ActionModule]; an action with Host has none.
	Binding
	// Host runs the action in the host instead of a module.
	Host HostAction
	// Mail makes the message that the action writes to a gateway's partner, instead of Host.
	Mail func(args json.RawMessage) (swarm.GatewayMail, *abi.Error)
	// Timeout bounds one call, waiting included.
	Timeout time.Duration
	// Params are the operator's parameters for the action, JSON.
	Params json.RawMessage
	// Calls are the actions that it may call, breakpoint actions included.
	Calls []string
	// Check checks the arguments of a call; nil accepts all.
	Check ArgsCheck
}

// HostAction runs an action outside the sandbox, as an effect. It is safe for concurrent
// use and returns soon after ctx ends. Its answer is a JSON value.
type HostAction func(ctx context.Context, c HostCall) (json.RawMessage, *abi.Error)

// HostCall is one call of a host action.
type HostCall struct {
	Tenant string
	// Task is the task of the turn, Hops how many swarms a message of it would have
	// passed.
	Task  swarm.TaskKey
	Hops  int
	Trace swarm.Trace
	// Key is the same for each attempt of one call. Retry is set if an earlier attempt may
	// have run: the host stopped before it recorded the answer.
	Key   string
	Retry bool
	Args  json.RawMessage
}

// maxDepth bounds the nesting of actions.
const maxDepth = 8

// actionHandler returns the handler for a call of an action with code. A call that is
// refused without a run never begins.
func (o *ops) actionHandler(req []byte) (handler, bool) {
	ask, fault := readToolCall(call{op: abi.OpAction}, req)
	if fault == nil {
		fault = o.checkAction(ask)
	}
	if fault != nil {
		return handler{effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) { return nil, fault }}, true
	}
	a := o.actions[ask.Name]
	if a.Mail != nil {
		return a.mailHandler(ask), true
	}
	if a.Host != nil {
		return handler{effect: a.effect(ask.Args), noRetry: func(*ops, []byte) bool { return !a.Allow.RetryInDoubt }}, true
	}
	return o.actionRunner(a, actionRecord{Module: a.Module.Digest(), Limits: a.Limits, Params: a.Params}), true
}

// checkAction returns the error for a call that is refused, or nil.
func (o *ops) checkAction(ask *swarm.BreakpointCall) *abi.Error {
	a := o.actions[ask.Name]
	switch {
	case a == nil:
		return o.actionNotGranted(ask.Name)
	case strings.Count(o.prefix, ".") >= maxDepth:
		return abi.Errorf(abi.CodeLimit, abi.OpAction, "depth", "actions run within each other %d deep at most", maxDepth)
	case a.Check == nil:
		return nil
	}
	if err := a.Check(ask.Args); err != nil {
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "args", "the arguments of action %q: %v", a.Name, err)
	}
	return nil
}

// actionNotGranted is the error for an action that the caller may not call.
func (o *ops) actionNotGranted(name string) *abi.Error {
	if name == "" {
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "name", "action: name is missing; it must be the name of an action")
	}
	return abi.Errorf(abi.CodeUnsupported, abi.OpAction, "op", "%s has no action %.64q; %s actions names those it may call",
		o.callerName(), name, o.tableName())
}

// callerName names the caller in messages, tableName its table in the file.
func (o *ops) callerName() string {
	if o.action != nil {
		return fmt.Sprintf("action %q", o.action.Name)
	}
	return fmt.Sprintf("agent %q", o.turn.Agent().Name)
}

func (o *ops) tableName() string {
	if o.action != nil {
		return "[actions." + o.action.Name + "]"
	}
	return "[agents." + o.turn.Agent().Name + "]"
}

// checkAgentOnly refuses the ops of agents to an action: an action has no mail, no history
// and no later turn.
func (o *ops) checkAgentOnly(op abi.Op) *abi.Error {
	switch op {
	case abi.OpMail, abi.OpHistory, abi.OpTimerSet, abi.OpTimerCancel:
		if o.action != nil {
			return abi.Errorf(abi.CodeDenied, op, "action", "%s is for agents; an action answers whoever called it", op)
		}
	}
	return nil
}

// effect runs a host action as an effect.
func (a *Action) effect(args json.RawMessage) func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
	return func(o *ops, _ context.Context, _ []byte, _ bool) (effectFunc, *abi.Error) {
		c := HostCall{Args: args}
		if o.turn != nil {
			c.Task, c.Hops, c.Trace = o.turn.Key(), o.turn.Hops(), o.turn.Trace()
			c.Tenant = c.Task.Tenant
		}
		return func(ctx context.Context, out *asyncOp) *abi.Error {
			ctx, cancel := context.WithTimeout(ctx, a.Timeout)
			defer cancel()
			c.Key, c.Retry = out.key, out.retry
			answer, fault := a.Host(ctx, c)
			if fault != nil {
				failed := *fault
				failed.Message = swarm.ActionFailedPrefix + fault.Message
				return &failed
			}
			return out.write(answer)
		}, nil
	}
}

// forAction returns the ops for a nested action.
func (o *ops) forAction(a *Action) *ops {
	in := *o
	in.action, in.actions = a, a.Actions
	in.allow, in.fetcher, in.models = a.Allow, a.Fetcher, a.Models
	in.seed = deriveSeed(o.seed, "action "+o.prefix)
	in.ids = rand.NewChaCha8(deriveSeed(in.seed, "ids"))
	return &in
}

// withAction marks the reply as the answer of an action, to be staged once the guest has
// it.
func (r *reply) withAction(req []byte) *reply {
	if r.call.op == abi.OpAction {
		r.actionRequest = req
	}
	return r
}

// stageAction stages the result of an action that the agent called.
func (o *ops) stageAction(c call, req, body []byte, fault *abi.Error) {
	if o.turn == nil || o.action != nil || o.j.failure != nil {
		return
	}
	a, _ := readToolCall(c, req) // it ran, so it is valid
	a.ID = o.turn.CallID(c.path)
	o.turn.StageActionResult(*a, displayText(body), fault)
}

// displayText is an answer for people and models: a string as it is, anything else as
// JSON.
func displayText(body []byte) string {
	var text string
	if bytes.HasPrefix(body, []byte(`"`)) && json.Unmarshal(body, &text) == nil {
		return text
	}
	return string(body)
}
