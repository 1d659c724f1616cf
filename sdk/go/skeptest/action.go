package skeptest

import (
	"encoding/json"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Act runs one call of an action. Args is encoded as JSON.
func Act(a skep.Actor, name string, args any) (json.RawMessage, *skep.Error) {
	h := newHost(Input{})
	h.input = mustJSON(skep.ActionCall{Name: name, Args: mustJSON(args)})
	if status := abi.Status(skep.DriveAction(h, a)); status != abi.StatusOK {
		return nil, failure(status, h.output)
	}
	return h.output, nil
}
