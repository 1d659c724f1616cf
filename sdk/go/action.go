package skep

import (
	"encoding/json"
	"fmt"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

// ActionCall is one call of an action. It is valid until Action returns.
type ActionCall struct {
	Name string `json:"name"`
	// Args fit the parameters of the descriptor: the host has checked them.
	Args json.RawMessage `json:"args"`

	turn *Turn
}

// Host is what the action reaches, with the methods of a turn: ops as far as the
// operator grants them to the action, and its params. It has no message, no state
// and no history, and sends no mail.
func (c *ActionCall) Host() *Turn { return c.turn }

// Action calls an action of the operator's file and decodes its answer into rsp, as
// [Turn.Call] does. [Unsupported] is a name that was not given to this agent, [Invalid]
// args that do not fit, [Upstream] an action that has failed; the turn goes on. For
// several that people answer, [Turn.Submit] takes an [ActionCall].
func (t *Turn) Action(name string, args, rsp any) error {
	raw, err := encode(args)
	if err != nil {
		return fmt.Errorf("%s: args of %s: %w", OpAction, name, err)
	}
	return t.Call(OpAction, ActionCall{Name: name, Args: raw}, rsp)
}

// DriveAction runs one call of an action against a host. Like [Drive] it is a
// seam that agents do not call.
func DriveAction(h link.Host, a Agent) int32 {
	actor, ok := a.(Actor)
	if !ok {
		return int32(abi.StatusNotImplemented)
	}
	var c struct {
		ActionCall
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(h.Input(), &c); err != nil {
		return int32(outcome(h, nil, Errorf(Invalid, "action input: %v", err)))
	}
	c.turn = &Turn{host: h, params: c.Params}
	answer, err := actor.Action(&c.ActionCall)
	if err != nil {
		return int32(outcome(h, nil, err))
	}
	out, err := marshal(answer)
	return int32(outcome(h, out, err))
}
