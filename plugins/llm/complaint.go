package main

import (
	"encoding/json"
	"slices"

	skep "skep/sdk/go"
)

// handled reports whether a message of the host only repeats the refusal of a call
// that the model has seen at once, and has made good in the same turn by sending
// something else. The model would do it twice.
func handled(t *skep.Turn, past []skep.Entry) bool {
	if !t.Message.FromSystem() || t.Message.FromTimer() {
		return false
	}
	refused := "ERROR: " + t.Message.Body
	i := len(past) - 1
	for i >= 0 && (past[i].Result == nil || past[i].Result.OK || past[i].Result.Text != refused) {
		i--
	}
	if i < 0 {
		return false
	}
	sent := map[string]bool{}
	return slices.ContainsFunc(past[i+1:], func(e skep.Entry) bool {
		if e.Turn != past[i].Turn {
			return false
		}
		if e.Call != nil {
			sent[e.Call.ID] = slices.Contains(sending, e.Call.Name)
		}
		return e.Result != nil && e.Result.OK && sent[e.Result.ID]
	})
}

// sending are the MAIL tools after which another agent goes on.
var sending = []string{"send_request", "send_response", "send_interrupt", "send_broadcast", "send_interswarm_broadcast", "task_complete"}

// targetOf is the target of a call's arguments.
func targetOf(args json.RawMessage) string {
	var to struct{ Target string }
	if json.Unmarshal(args, &to) != nil {
		return ""
	}
	return to.Target
}
