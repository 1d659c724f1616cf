package swarm_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// acts makes the boss end its first turn as act does; later ones play the script.
func acts(act func(ctx context.Context, t *swarm.Turn) swarm.Outcome) func(*hive) {
	return func(h *hive) {
		h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if t.Number() == 1 {
				return act(ctx, t)
			}
			return script(ctx, t)
		}
	}
}

func confirm(id string) swarm.BreakpointCall {
	return swarm.BreakpointCall{Call: id, Op: abi.OpAction, ID: id, Name: "confirm", Args: json.RawMessage(`{}`)}
}

// The agent of a turn that ends after an action, with no mail call in between, gets a
// message to go on; any other does not.
func TestFollowUpOfActions(t *testing.T) {
	refused := abi.Errorf(abi.CodeUnavailable, abi.OpAction, "no_result", "nobody knows")
	off := abi.Errorf(abi.CodeCancelled, abi.OpAction, "cancelled", "never mind")
	write := func(turn *swarm.Turn) {
		call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "b"})
	}
	for name, c := range map[string]struct {
		act  func(turn *swarm.Turn)
		want string
	}{
		"an answer": {func(turn *swarm.Turn) { turn.StageBreakpointResult(confirm("a"), "yes", nil) }, mail.SubjectActionComplete},
		"several": {func(turn *swarm.Turn) {
			turn.StageBreakpointResult(confirm("a"), "1", nil)
			turn.StageBreakpointResult(confirm("b"), "2", nil)
		}, mail.SubjectActionComplete},
		"a fault": {func(turn *swarm.Turn) {
			turn.StageBreakpointResult(confirm("a"), "", refused)
			turn.StageBreakpointResult(confirm("b"), "2", nil)
		}, mail.SubjectActionError},
		"code":         {func(turn *swarm.Turn) { turn.StageActionResult(confirm("a"), "7", nil) }, mail.SubjectActionComplete},
		"failing code": {func(turn *swarm.Turn) { turn.StageActionResult(confirm("a"), "", refused) }, mail.SubjectActionError},
		"a refusal":    {func(turn *swarm.Turn) { turn.StageRefusedAction(confirm("a"), refused) }, mail.SubjectActionError},
		"mail before":  {func(turn *swarm.Turn) { write(turn); turn.StageBreakpointResult(confirm("a"), "yes", nil) }, mail.SubjectActionComplete},
		"mail behind":  {func(turn *swarm.Turn) { turn.StageBreakpointResult(confirm("a"), "yes", nil); write(turn) }, ""},
		"called off": {func(turn *swarm.Turn) {
			turn.StageBreakpointResult(confirm("a"), "", off)
			write(turn)
			turn.StageBreakpointResult(confirm("b"), "", off)
		}, ""},
		"a MAIL tool of a person": {func(turn *swarm.Turn) {
			write(turn)
			a := confirm("a")
			a.Op = abi.OpMail
			turn.StageBreakpointResult(a, "yes", nil)
		}, ""},
		"behind the completion": {func(turn *swarm.Turn) {
			call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
			turn.StageBreakpointResult(confirm("a"), "yes", nil)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHive(t, acts(func(_ context.Context, turn *swarm.Turn) swarm.Outcome { c.act(turn); return swarm.Outcome{} }))
			h.ask("x", task("t"))
			told := slices.DeleteFunc(h.agents.turns(), func(turn string) bool { return !strings.HasPrefix(turn, "boss<-hive:::action_") })
			want := []string{"boss<-hive:" + c.want}
			if c.want == "" {
				want = []string{}
			}
			if !slices.Equal(told, want) {
				t.Errorf("the agent was told %q, want %q; turns %q", told, want, h.agents.turns())
			}
		})
	}
}

// A turn cannot fill the log with calls that are refused.
func TestRefusedActionsAreBounded(t *testing.T) {
	fault := abi.Errorf(abi.CodeUnsupported, abi.OpAction, "op", "no such action")
	h := newHive(t, acts(func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for range 1000 {
			a := confirm("a")
			a.Name, a.Args = strings.Repeat("é", 50_000), json.RawMessage(`"`+strings.Repeat("x", 50_000)+`"`)
			turn.StageRefusedAction(a, fault)
		}
		return swarm.Outcome{}
	}))
	h.ask("x", task("t"))
	n, size := 0, 0
	for _, e := range h.events("t") {
		size += len(e.Extra)
		if e.Name == "action_error" {
			n++
		}
	}
	if n != 16 || size > 64<<10 {
		t.Errorf("%d refusals are in the log, of %d bytes", n, size)
	}
}

// What an attempt that the host's stop has discarded did is not counted again.
func TestUsageOfADiscardedTurn(t *testing.T) {
	begun := make(chan struct{}, 1)
	first := true
	h := newHive(t, acts(func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		used := swarm.Usage{Fuel: 7, HostCalls: 3, Fetches: 1, FetchBytes: 100}
		if first {
			first = false
			begun <- struct{}{}
			<-ctx.Done()
			return swarm.Outcome{Usage: used, Failure: &swarm.Failure{Cause: "test", Message: "stopped"}}
		}
		used.HostCalls, used.Fetches = 5, 2
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{Usage: used}
	}))
	h.mustPost("x", task("t"))
	<-begun
	h.restart()
	eventually(t, "the task ends", func() bool { return h.record("t").Task.State == swarm.StateCompleted })
	want := swarm.Usage{Turns: 1, Fuel: 14, HostCalls: 5, Fetches: 2, FetchBytes: 100}
	if rec := h.record("t").Task; rec.Usage != want || len(rec.Metered) != 0 {
		t.Errorf("usage %+v, want %+v; %v; turns %q", rec.Usage, want, rec.Metered, h.agents.turns())
	}
}
