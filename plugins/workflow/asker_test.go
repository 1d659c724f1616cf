package main

import (
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// TestAskerWithoutWay: a plan of an agent that could not get the answer fails before a step is asked,
// with the line of the file to change; one of a foreign agent is the host's to answer.
func TestAskerWithoutWay(t *testing.T) {
	t.Parallel()
	const plan = `{"message_type":"workflow_start","payload":{"workflow_id":"w","execution_plan":{"steps":[{"id":"s","agent_id":"a","task_type":"x"}]}}}`
	for from, fails := range map[string]bool{"boss": false, "eve": true, "eve@depot": false} {
		out := skeptest.Run(Workflow{}, skeptest.Input{
			Agent: "flow", CommTargets: []string{"boss", "a"},
			World:   &skeptest.World{KV: skep.ScopeTask, Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)},
			Message: skep.Message{Type: skep.TypeRequest, Sender: skep.Address{Type: skep.AddressAgent, Name: from}, Subject: "go", Body: plan},
		})
		denied := out.Err != nil && out.Err.Code == skep.Denied && strings.Contains(out.Err.Message, `"`+from+`"`) && strings.Contains(out.Err.Message, "[agents.flow] comm_targets")
		if denied != fails || (len(out.Mail) == 0) != fails {
			t.Errorf("%s: %v, %+v", from, out.Err, out.Mail)
		}
	}
}
