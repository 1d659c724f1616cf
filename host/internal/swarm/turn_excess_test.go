package swarm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// The history keeps what was refused after the end of a turn's mail and beyond its
// limits, as far as a turn cannot fill it so.
func TestExcessCallsAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		before int
		excess int
		code   abi.Code
		text   string
		kept   int
	}{
		"after the end":    {0, 2, abi.CodeConflict, "ERROR: task_complete ended the mail calls of this turn", 2},
		"beyond the limit": {64, 3, abi.CodeLimit, "ERROR: a turn may make 64 mail calls", 3},
		"a flood":          {0, 100, abi.CodeConflict, "ERROR: task_complete ended the mail calls of this turn", 16},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHive(t)
			h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
				for range c.before {
					call(turn, mail.ToolHelp, obj{})
				}
				if c.before == 0 {
					call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
				}
				for range c.excess {
					_, fault := turn.CallMailTool(abi.MailRequest{Tool: mail.ToolSendRequest, Args: []byte(`{"target":"math","subject":"s","body":"x"}`)})
					if fault == nil || fault.Code != c.code {
						t.Errorf("refused with %v", fault)
					}
				}
				return swarm.Outcome{}
			}
			h.ask("x", task("t"))
			ids, kept := map[string]bool{}, 0
			for _, e := range h.history("t", "boss") {
				switch {
				case e.Kind == abi.KindCall:
					if ids[e.Call.ID] {
						t.Errorf("the id %s is used twice", e.Call.ID)
					}
					ids[e.Call.ID] = true
				case e.Kind == abi.KindResult && strings.HasPrefix(e.Result.Text, c.text):
					kept++
				}
			}
			if kept != c.kept {
				t.Error(fmt.Sprint(kept, " refused calls are kept, want ", c.kept))
			}
		})
	}
}
