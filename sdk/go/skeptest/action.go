package skeptest

import (
	"encoding/json"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Act runs one call of an action. Args is encoded as JSON.
func Act(a skep.Actor, name string, args any) (json.RawMessage, *skep.Error) {
	return ActIn(a, name, args, Input{})
}

// action answers a call of an action that the test has given.
func (h *host) action(req json.RawMessage) (any, error) {
	var ask struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	run, ok := h.world.Actions[ask.Name]
	if !ok {
		return nil, because(skep.Unsupported, "action", "agent %q has no action %q; set World.Actions", h.in.Agent, ask.Name)
	}
	return run(ask.Args)
}

// ActIn is Act with the params, the World and the Answer of an input. The rest of
// the input is a turn's, which an action does not see.
func ActIn(a skep.Actor, name string, args any, in Input) (json.RawMessage, *skep.Error) {
	h := newHost(in)
	h.input = mustJSON(struct {
		skep.ActionCall
		Params any `json:"params"`
	}{skep.ActionCall{Name: name, Args: mustJSON(args)}, in.Params})
	if status := abi.Status(skep.DriveAction(h, a)); status != abi.StatusOK {
		return nil, failure(status, h.output)
	}
	return h.output, nil
}
