package swarm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Arguments made to cost the host time, memory or disk are refused, and little
// of them is kept.
func TestHostileArguments(t *testing.T) {
	big := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct{ tool, args, code string }{
		"a list of junk":        {mail.ToolSendBroadcast, `{"subject":"s","body":"b","targets":[0` + strings.Repeat(",0", 700_000) + `]}`, "INVALID"},
		"a list too long":       {mail.ToolSendBroadcast, `{"subject":"s","body":"b","targets":["math"` + strings.Repeat(`,"math"`, 5000) + `]}`, "INVALID"},
		"too deep":              {mail.ToolSendRequest, `{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "INVALID"},
		"too large":             {mail.ToolSendRequest, `{"body":"` + strings.Repeat("x", 3<<20) + `"}`, "INVALID"},
		"unknown keys":          {mail.ToolSendRequest, `{"body":"` + big + `","x":1}`, "INVALID"},
		"large to a stranger":   {mail.ToolSendRequest, `{"target":"nobody","subject":"s","body":"` + big + `"}`, "DENIED"},
		"large and not granted": {mail.ToolTaskComplete, `{"finish_message":"` + big + `"}`, "DENIED"},
		"unknown tool":          {"sing", `{"text":"` + big + `"}`, "NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHive(t)
			var got string
			h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				if incoming(turn).Payload.Sender.Type == mail.System {
					call(turn, mail.ToolSendResponse, obj{"target": "boss", "subject": "done", "body": ""})
					return swarm.Outcome{}
				}
				_, fault := turn.CallMailTool(abi.MailRequest{Tool: c.tool, Args: json.RawMessage(c.args)})
				got = fault.Error()
				return swarm.Outcome{}
			}
			if c.tool == mail.ToolSendBroadcast {
				h.def.Agents[1].CanComplete = true
				h.restart()
			}
			h.ask(`[["send_request",{"target":"math","subject":"s","body":"go"}],["await_message",{}]]`, task("t"))
			if !strings.HasPrefix(got, c.code) {
				t.Errorf("answer %.200q, want %s", got, c.code)
			}
			kept, err := json.Marshal([]any{h.events("t"), h.history("t", "math")})
			if err != nil {
				t.Fatal(err)
			}
			if len(kept) > 64<<10 {
				t.Errorf("%d bytes were kept of a refused call", len(kept))
			}
		})
	}
}

// Refused calls count towards what a turn may stage.
func TestRefusedCallsAreCounted(t *testing.T) {
	h := newHive(t)
	calls := 0
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for calls = 0; calls < 1000; calls++ {
			if got := call(turn, "sing", obj{}); strings.HasPrefix(got, "ERROR LIMIT") {
				break
			}
		}
		call(turn, mail.ToolTaskComplete, obj{})
		return swarm.Outcome{}
	}
	h.ask("x")
	if calls > 64 {
		t.Errorf("%d refused calls were kept", calls)
	}
}
