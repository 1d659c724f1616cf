package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Two requests to one agent are told apart by the request_id in the answer of
// send_request: the answer to each has it, and so has the report of a failure.
func TestRequestIDTellsAnswersApart(t *testing.T) {
	asked, got := map[string]string{}, map[string]string{}
	h := newHive(t)
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Body == "fail" {
			return failed(fmt.Errorf("no such sum"))
		}
		return script(ctx, turn)
	}
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		m := incoming(turn)
		if m.Payload.Sender.Type == mail.User {
			for _, body := range []string{"first", "fail", "second"} {
				args, _ := json.Marshal(obj{"target": "math", "subject": "s", "body": body})
				rsp, fault := turn.CallMailTool(abi.MailRequest{Tool: mail.ToolSendRequest, Args: args})
				if fault != nil || rsp.RequestID == "" || rsp.RequestID == rsp.ID {
					t.Errorf("%s: %+v, %v", body, rsp, fault)
				}
				asked[rsp.RequestID] = body
			}
			return swarm.Outcome{}
		}
		got[asked[m.Payload.ID]] = m.Payload.Subject + " " + m.Payload.Body
		if len(got) == 3 {
			call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		}
		return swarm.Outcome{}
	}
	if a := h.ask("x", task("t")); a.Body != "done" {
		t.Fatalf("%+v, answers %q", a, got)
	}
	if got["first"] != "Re: s echo: first" || got["second"] != "Re: s echo: second" ||
		!strings.HasPrefix(got["fail"], mail.SubjectAgentError) {
		t.Errorf("%q", got)
	}
}
