package swarm_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// TestSystemPingPong: an agent whose every turn makes the system write to it is
// stopped by the message limit, whether it is the entrypoint or not (G-60).
func TestSystemPingPong(t *testing.T) {
	t.Parallel()
	for _, stubborn := range []string{"boss", "math"} {
		h := newHive(t, func(h *hive) { h.def.Limits.TaskMessages = 5 })
		h.agents.by[stubborn] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			call(turn, "no_such_tool", obj{})
			return swarm.Outcome{}
		}
		a := h.ask(`[["send_request",{"target":"math","subject":"s","body":"b"}]]`, task("t"))
		turns := h.agents.turns()
		if len(turns) != 6 || turns[5] != "boss<-hive:"+mail.SubjectMaximumStepsReached {
			t.Errorf("%s: turns %q", stubborn, turns)
		}
		if finished := a.State == swarm.StateCompleted; finished != (stubborn == "math") {
			t.Errorf("%s: answer %+v", stubborn, a)
		}
	}
}

// TestUnknownSwarm: a message to a swarm that this host cannot reach is refused in its
// result and by mail, and the task goes on (R-041, R-085, G-02).
func TestUnknownSwarm(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.def.Agents[0].Targets = append(h.def.Agents[0].Targets, "x@depot") })
	for tool, args := range map[string]obj{
		mail.ToolSendRequest:   {"target": "x@depot", "subject": "s", "body": "b"},
		mail.ToolSendBroadcast: {"targets": []string{"math", "x@depot"}, "subject": "s", "body": "b"},
	} {
		var result atomic.Value
		h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			if incoming(turn).Payload.Sender.Type == mail.System {
				return script(ctx, turn)
			}
			result.Store(call(turn, tool, args))
			return swarm.Outcome{}
		}
		a := h.ask("x", task(tool))
		if got, _ := result.Load().(string); !strings.HasPrefix(got, "ERROR UNAVAILABLE: ") || !strings.Contains(got, "depot") {
			t.Errorf("%s: result %q", tool, got)
		}
		if !strings.HasPrefix(a.Body, "boss got [::router_error::]") {
			t.Errorf("%s: answer %+v", tool, a)
		}
		if snap := h.record(tool); len(snap.Rows) != 0 {
			t.Errorf("%s: a part was sent: %+v", tool, snap.Rows)
		}
	}
}

// TestOneTurnAtATime: an agent has one turn at a time in a task, while others have
// theirs beside it. Here math is claimed twice, for a request and then for an
// interrupt, and the second claim comes up while the first one's turn runs (G-31).
func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.opt.Turns = 8 }) // two for one instance
	posted, entered, beside := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var running, most, turns atomic.Int32
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		<-posted
		return script(ctx, turn)
	}
	h.agents.by["math"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		defer running.Add(-1)
		most.Store(max(most.Load(), running.Add(1)))
		if turns.Add(1) == 1 {
			close(entered)
			return idle(ctx, turn, beside)
		}
		return swarm.Outcome{}
	}
	h.agents.by["text"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Subject == "first" {
			return idle(ctx, turn, entered)
		}
		close(beside)
		return swarm.Outcome{}
	}
	send := func(tool, to, subject string) string {
		return `["` + tool + `",{"target":"` + to + `","subject":"` + subject + `","body":"b"}]`
	}
	h.mustPost("["+send("send_request", "text", "first")+"]", task("t"))
	h.mustPost("["+send("send_request", "math", "low")+"]", task("t"))
	last := h.mustPost("["+send("send_interrupt", "math", "high")+","+send("send_request", "text", "second")+"]", task("t"))
	close(posted)
	h.answer(last)
	if most.Load() != 1 || turns.Load() != 2 {
		t.Errorf("math had %d turns, up to %d at a time", turns.Load(), most.Load())
	}
}

// idle is a turn that waits without holding the processor.
func idle(ctx context.Context, turn *swarm.Turn, until <-chan struct{}) swarm.Outcome {
	turn.CPU().Release()
	<-until
	if err := turn.CPU().Acquire(ctx); err != nil {
		return failed(err)
	}
	return swarm.Outcome{}
}
