package swarm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// preempting has tokens enough: the agents of these tests keep theirs while they
// wait.
func preempting(h *hive) { h.def.Preempt, h.opt.Tokens = true, 8 }

func interrupt(p *swarm.Post) { p.Type = mail.Interrupt }

// waiting is a turn that signals its start and waits to be interrupted.
type waiting struct {
	begun chan struct{}
	// end is what it does then.
	end func(t *swarm.Turn) swarm.Outcome
}

func newWaiting(end func(t *swarm.Turn) swarm.Outcome) waiting {
	return waiting{make(chan struct{}), end}
}

// first waits in the first turn of an agent and plays the script in the others.
func (w waiting) first(ctx context.Context, t *swarm.Turn) swarm.Outcome {
	select {
	case <-w.begun:
		return script(ctx, t)
	default:
	}
	close(w.begun)
	select {
	case <-t.Interrupted():
		return w.end(t)
	case <-ctx.Done():
		return failed(context.Cause(ctx))
	}
}

// A post interrupts the turn under way. What it has staged is committed, and
// the interrupt is the next turn, ahead of what came before it (S-03).
func TestPreemptByAPost_S03(t *testing.T) {
	t.Parallel()
	h := newHive(t, preempting)
	w := newWaiting(func(turn *swarm.Turn) swarm.Outcome {
		call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "staged", "body": "x"})
		return swarm.Outcome{}
	})
	h.agents.by["boss"] = w.first
	h.mustPost("long work", task("t"))
	<-w.begun
	r := h.mustPost("stop", task("t"), interrupt)
	if a := h.answer(r); a.Body != "boss got [q] stop" {
		t.Errorf("answered %q", a.Body)
	}
	turns := h.agents.turns()
	mine := slices.DeleteFunc(slices.Clone(turns), func(s string) bool { return !strings.HasPrefix(s, "boss") })
	if len(mine) < 2 || mine[0] != "boss<-alice:q" || mine[1] != "boss<-alice:q" {
		t.Errorf("turns %v", turns)
	}
	log := strings.Join(names(h.events("t")), " ")
	if !strings.HasPrefix(log, "new_message new_message tool_call new_message") || strings.Contains(log, "agent_error") {
		t.Errorf("the log is %s", log)
	}
}

// An agent's commit interrupts its target in the same way, and only the target.
func TestPreemptByAnAgent(t *testing.T) {
	t.Parallel()
	h := newHive(t, preempting)
	math := newWaiting(func(*swarm.Turn) swarm.Outcome { return swarm.Outcome{} })
	text := newWaiting(func(*swarm.Turn) swarm.Outcome { return failed(errors.New("text was interrupted")) })
	h.agents.by["math"], h.agents.by["text"] = math.first, text.first
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		switch p := incoming(turn).Payload; {
		case p.Body == "go":
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "long work"})
			call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "s", "body": "long work"})
		case p.Body == "now":
			call(turn, mail.ToolSendInterrupt, obj{"target": "math", "subject": "s", "body": "stop"})
		default:
			return script(ctx, turn)
		}
		return swarm.Outcome{}
	}
	r := h.mustPost("go", task("t"))
	<-math.begun
	<-text.begun
	h.mustPost("now", task("t"))
	if a := h.answer(r); a.Body != "boss got [Re: s] echo: stop" {
		t.Errorf("answered %q", a.Body)
	}
	if err := h.rt.CancelTask(context.Background(), key("t"), "alice"); err != nil && !errors.Is(err, swarm.ErrConflict) {
		t.Error(err)
	}
}

// An interrupted turn that fails, maybe because its ops were called off, does
// not end the task: the interrupt is delivered in any case.
func TestInterruptedTurnThatFails(t *testing.T) {
	t.Parallel()
	h := newHive(t, preempting)
	w := newWaiting(func(turn *swarm.Turn) swarm.Outcome {
		call(turn, mail.ToolSendRequest, obj{"target": "text", "subject": "staged", "body": "x"})
		return failed(errors.New("CANCELLED"))
	})
	h.agents.by["boss"] = w.first
	first := h.mustPost("long work", task("t"))
	<-w.begun
	a := h.ask("stop", task("t"), interrupt)
	if b := h.answer(first); a.Body != "boss got [q] stop" || b != a || a.State != swarm.StateCompleted {
		t.Errorf("answered %+v and %+v", a, b)
	}
	want := []string{"new_message", "new_message", "agent_error", "tool_call", "task_complete_call", "new_message", "task_complete"}
	if diff := cmp.Diff(want, names(h.events("t"))); diff != "" {
		t.Errorf("the log (-want +got)\n%s", diff)
	}
}

// A second interrupt finds the turn interrupted already, and both are delivered.
func TestTwoInterrupts(t *testing.T) {
	t.Parallel()
	h := newHive(t, preempting)
	both := make(chan struct{})
	w := newWaiting(func(*swarm.Turn) swarm.Outcome { <-both; return swarm.Outcome{} })
	h.agents.by["boss"] = w.first
	h.mustPost("long work", task("t"))
	<-w.begun
	one := h.mustPost("one", task("t"), interrupt)
	two := h.mustPost("two", task("t"), interrupt)
	close(both)
	if a, b := h.answer(one), h.answer(two); a.Body != "boss got [q] one" || b.Body != "boss got [q] two" {
		t.Errorf("answered %q, %q", a.Body, b.Body)
	}
}

// Other mail, other tasks and swarms that queue interrupts leave a turn alone.
func TestNotPreempted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preempt bool
		change  []func(*swarm.Post)
	}{
		"queue mode":   {false, []func(*swarm.Post){task("t"), interrupt}},
		"a request":    {true, []func(*swarm.Post){task("t")}},
		"another task": {true, []func(*swarm.Post){task("u"), interrupt}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHive(t, preempting, func(h *hive) { h.def.Preempt = c.preempt })
			begun, look := make(chan struct{}), make(chan struct{})
			h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
				if incoming(turn).Payload.Body == "long work" {
					close(begun)
					<-look
					select {
					case <-turn.Interrupted():
						return failed(errors.New("interrupted"))
					default:
					}
				}
				return script(ctx, turn)
			}
			first := h.mustPost("long work", task("t"))
			<-begun
			second := h.mustPost("more", c.change...)
			close(look)
			if a := h.answer(first); a.Body != "boss got [q] long work" {
				t.Errorf("the first is answered %q", a.Body)
			}
			if a := h.answer(second); a.Body != "boss got [q] more" {
				t.Errorf("the second is answered %q", a.Body)
			}
		})
	}
}
