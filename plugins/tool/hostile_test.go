package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// I-034: a request that is too long for an action is not read, and has an answer with the reason.
// Interrupts with ids that are none of a message's leave no state behind.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	a, _ := ask(t, shop(calls), skep.Message{Sender: peer, Subject: strings.Repeat("s", 4<<10), Routing: json.RawMessage(`{"gateway":{"parts":[{"sha256":"x","size":16777216}]}}`)})
	if a.Error == nil || a.Error.Code != "LIMIT" || !strings.Contains(a.Error.Message, "16777216 bytes, at most 2097152") || len(calls) > 0 {
		t.Errorf("a request of 16 MiB has the answer %+v, calls %v", a, calls)
	}
	var state json.RawMessage
	for i := range 2 * maxWithdrawn {
		for _, id := range []string{strings.Repeat("x", 200<<10), "", fmt.Sprint(i, strings.Repeat("<", maxID-4))} {
			out := skeptest.Run(Tool{}, skeptest.Input{State: state, Message: skep.Message{
				Type: skep.TypeInterrupt, Sender: peer, Body: `{"message_type":"workflow_cancel","payload":{"message_id":"` + id + `"}}`,
			}})
			if out.Err != nil || len(out.Mail) > 0 || len(out.State) > 64<<10 {
				t.Fatalf("%d, an id of %d bytes: %v, %d bytes of state", i, len(id), out.Err, len(out.State))
			}
			state = out.State
		}
	}
	if !strings.Contains(string(state), `"127`) {
		t.Errorf("the last withdrawal is not in %s", state)
	}
}
