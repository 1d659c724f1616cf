package skep

import (
	"encoding/json"

	"skep/sdk/go/internal/abi"
	"skep/sdk/go/internal/link"
)

// ActionCall is one call of an action.
type ActionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// DriveAction runs one call of an action against a host. Like [Drive] it is a
// seam that agents do not call.
func DriveAction(h link.Host, a Agent) int32 {
	actor, ok := a.(Actor)
	if !ok {
		return int32(abi.StatusNotImplemented)
	}
	var c ActionCall
	if err := json.Unmarshal(h.Input(), &c); err != nil {
		return int32(outcome(h, nil, Errorf(Invalid, "action input: %v", err)))
	}
	answer, err := actor.Action(&c)
	if err != nil {
		return int32(outcome(h, nil, err))
	}
	out, err := marshal(answer)
	return int32(outcome(h, out, err))
}
