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
	"skep/host/internal/sandbox"
	"skep/host/internal/swarm"
)

// Actor is a [Module] that runs actions, too.
type Actor interface {
	Module
	Action(ctx context.Context, t sandbox.Turn) sandbox.Result
}

// Action is an action that has code, as those who are granted it call it. It does
// not change.
type Action struct {
	Name string
	// Binding is what it runs on and what it may do itself. Its module is an
	// [Actor]; with Host it has none.
	Binding
	// Host does the action in the host, where it is none of a module's.
	Host HostAction
	// Timeout bounds one call, waiting included.
	Timeout time.Duration
	// Params is what the operator says to it, JSON.
	Params json.RawMessage
	// Calls are the actions it may call, also those that people answer.
	Calls []string
	// Check checks the arguments of a call; nil takes all.
	Check Form
}

// HostAction does an action outside the sandbox, as an effect: it is safe for
// concurrent use and returns soon after ctx ends. Its answer is a JSON value.
type HostAction func(ctx context.Context, c HostCall) (json.RawMessage, *abi.Error)

// HostCall is one call of an action of the host.
type HostCall struct {
	Tenant string
	// Key is the same when a call is made again, and Again says that this may be
	// so: the host has stopped before its answer was known.
	Key   string
	Again bool
	Args  json.RawMessage
}

// maxDepth is how many actions may run within each other.
const maxDepth = 8

// acts prepares the call of an action that has code. What needs no run to be
// refused never begins.
func (o *ops) acts(req []byte) (handler, bool) {
	ask, fault := readAsk(call{op: abi.OpAction}, req)
	if fault == nil {
		fault = o.mayAct(ask)
	}
	if fault != nil {
		return handler{effect: func(*ops, context.Context, []byte, bool) (work, *abi.Error) { return nil, fault }}, true
	}
	a := o.actions[ask.Name]
	if a.Host != nil {
		return handler{effect: a.launch(ask.Args), once: func(*ops, []byte) bool { return !a.Allow.RetryInDoubt }}, true
	}
	return o.runs(a, ran{Module: a.Module.Digest(), Limits: a.Limits, Params: a.Params}), true
}

// mayAct says why a call of an action is refused.
func (o *ops) mayAct(ask *swarm.Ask) *abi.Error {
	a := o.actions[ask.Name]
	switch {
	case a == nil:
		return o.noAction(ask.Name)
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

// noAction is the fault of a call that is not granted.
func (o *ops) noAction(name string) *abi.Error {
	if name == "" {
		return abi.Errorf(abi.CodeInvalid, abi.OpAction, "name", "action: name is missing; it must be the name of an action")
	}
	return abi.Errorf(abi.CodeUnsupported, abi.OpAction, "op", "%s has no action %.64q; %s actions names those it may call",
		o.who(), name, o.tableName())
}

// who is who calls, in words for people, and tableName its table in the file.
func (o *ops) who() string {
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

// forAgents refuses an action the ops that are those of agents: it has no mail, no
// history and no later turn.
func (o *ops) forAgents(op abi.Op) *abi.Error {
	switch op {
	case abi.OpMail, abi.OpHistory, abi.OpTimerSet, abi.OpTimerCancel:
		if o.action != nil {
			return abi.Errorf(abi.CodeDenied, op, "action", "%s is for agents; an action answers whoever called it", op)
		}
	}
	return nil
}

// launch does an action of the host's as an effect.
func (a *Action) launch(args json.RawMessage) func(*ops, context.Context, []byte, bool) (work, *abi.Error) {
	return func(o *ops, _ context.Context, _ []byte, _ bool) (work, *abi.Error) {
		c := HostCall{Args: args}
		if o.turn != nil {
			c.Tenant = o.turn.Key().Tenant
		}
		return func(ctx context.Context, out *flight) *abi.Error {
			ctx, cancel := context.WithTimeout(ctx, a.Timeout)
			defer cancel()
			c.Key, c.Again = out.key, out.again
			answer, fault := a.Host(ctx, c)
			if fault != nil {
				failed := *fault
				failed.Message = swarm.ActionFailed + fault.Message
				return &failed
			}
			return out.write(answer)
		}, nil
	}
}

// within are the ops of an action that runs as the call whose ops o is.
func (o *ops) within(a *Action) *ops {
	in := *o
	in.action, in.actions = a, a.Actions
	in.allow, in.web, in.models = a.Allow, a.Web, a.Models
	in.seed = derive(o.seed, "action "+o.prefix)
	in.ids = rand.NewChaCha8(derive(in.seed, "ids"))
	return &in
}

// acting makes the reply to an effect that is an action a part of the turn once the
// guest knows it.
func (r *reply) acting(req []byte) *reply {
	if r.call.op == abi.OpAction {
		r.acts = req
	}
	return r
}

// act stages how an action of the turn's agent has ended.
func (o *ops) act(c call, req, body []byte, fault *abi.Error) {
	if o.turn == nil || o.action != nil || o.j.ended != nil {
		return
	}
	a, _ := readAsk(c, req) // it ran, so it was good
	a.ID = o.turn.AskID(c.path)
	o.turn.Acted(*a, words(body), fault)
}

// words is an answer as people and models read it: a text as it is, anything else
// as JSON.
func words(body []byte) string {
	var text string
	if bytes.HasPrefix(body, []byte(`"`)) && json.Unmarshal(body, &text) == nil {
		return text
	}
	return string(body)
}
