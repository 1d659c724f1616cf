package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// asks is an outcome that waits for one answer of a person.
func asks(t *swarm.Turn) swarm.Outcome {
	header := t.Header()
	return swarm.Outcome{Record: &swarm.Record{Header: &header}, Suspended: []swarm.BreakpointCall{
		{Call: "1", Op: abi.OpAction, ID: t.CallID("1"), Name: "confirm", Args: json.RawMessage(`{}`)},
	}}
}

// asker lets the boss ask a person once about a message with the body "asks",
// when begun was read and open is closed.
func asker(begun, open chan struct{}) func(*hive) {
	return func(h *hive) {
		h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if incoming(t).Payload.Body != "asks" || t.PriorAttempt() != nil {
				return script(ctx, t)
			}
			begun <- struct{}{}
			<-open
			return asks(t)
		}
	}
}

func results(text string) func(*swarm.Post) {
	return func(p *swarm.Post) { p.Results, p.MustExist = &swarm.Results{One: &text}, true }
}

// A post that waits when its task pauses gets its answer when the task goes on,
// whether its caller began to wait before the pause or comes later.
func TestPostWaitsThroughPause(t *testing.T) {
	begun, open := make(chan struct{}), make(chan struct{})
	h := newHive(t, asker(begun, open))
	first := h.mustPost("asks", task("t"))
	<-begun
	early, late := h.mustPost("early", task("t")), h.mustPost("late", task("t"))
	got := make(chan swarm.Answer, 1)
	go func() { got <- h.answer(early) }()
	close(open)
	if a := h.answer(first); a.State != swarm.StatePaused {
		t.Fatalf("%+v", a)
	}
	h.ask("", task("t"), results("yes"))
	if a := h.answer(late); a.Body != "boss got [q] late" {
		t.Errorf("late: %+v", a)
	}
	if a := <-got; a.Body != "boss got [q] early" {
		t.Errorf("early: %+v", a)
	}
}

// A feed that outlasts pauses ends with the task, not before.
func TestFeedOutlastsPauses(t *testing.T) {
	begun, open := make(chan struct{}, 1), make(chan struct{})
	close(open)
	h := newHive(t, asker(begun, open))
	h.ask("asks", task("t"))
	follow := func(outlasts bool) *swarm.Feed {
		feed, err := h.rt.Follow(t.Context(), key("t"), h.record("t").Task.Cursor)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(feed.Close)
		if outlasts {
			feed.StayOpenDuringPauses()
		}
		return feed
	}
	if _, err := follow(false).Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("an ordinary feed of a paused task: %v", err)
	}
	feed := follow(true)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := feed.Next(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	}()
	h.ask("", task("t"), results("yes"))
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the feed ended with %v", err)
	}
}

// graceful is a boss whose turn at the limit asks a person, and then does not
// complete the task.
func graceful(h *hive) {
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		switch {
		case incoming(t).Payload.Subject != mail.SubjectMaximumStepsReached:
			return script(ctx, t)
		case t.PriorAttempt() == nil:
			return asks(t)
		}
		return swarm.Outcome{}
	}
}

const twoRequests = `[["send_request",{"target":"math","subject":"s","body":"x"}],["send_request",{"target":"text","subject":"s","body":"x"}]]`

// An answer from a person begins the count of messages anew, also where the turn
// that asked was the last one the task had.
func TestLimitTurnAsks(t *testing.T) {
	h := newHive(t, graceful)
	a := h.ask(twoRequests, task("t"), func(p *swarm.Post) { p.MaxSteps = 1 })
	if a.State != swarm.StatePaused {
		t.Fatalf("%+v", a)
	}
	a = h.ask("", task("t"), results("yes"), func(p *swarm.Post) { p.MaxSteps = 20 })
	if a.State != swarm.StateCompleted {
		t.Errorf("%+v", a)
	}
	// Both requests were sent; the answer to one may end the task before the other is read.
	log := h.events("t")
	for _, to := range []string{"math", "text"} {
		sent := func(e swarm.Event) bool {
			return e.Name == "new_message" && strings.Contains(string(e.Extra), `"recipient":"`+to+`"`)
		}
		if !slices.ContainsFunc(log, sent) {
			t.Errorf("nothing is sent to %s: %q", to, names(log))
		}
	}
	if snap := h.record("t"); snap.Task.Grace || len(snap.Task.Breakpoints) != 0 {
		t.Errorf("%+v", snap.Task)
	}
}

// A user who posts instead lets that turn end as well.
func TestLimitTurnIsCalledOff(t *testing.T) {
	h := newHive(t, graceful)
	h.ask(twoRequests, task("t"), func(p *swarm.Post) { p.MaxSteps = 1 })
	if a := h.ask("hello", task("t"), func(p *swarm.Post) { p.MaxSteps = 20 }); a.State != swarm.StateCompleted && a.State != swarm.StateRunning {
		t.Errorf("%+v", a)
	}
	eventually(t, "the task ends", func() bool { return h.record("t").Task.State == swarm.StateCompleted })
	if snap := h.record("t"); len(snap.Task.Breakpoints) != 0 {
		t.Errorf("breakpoints %+v", snap.Task.Breakpoints)
	}
	limit := func(turn string) bool { return turn == "boss<-hive:"+mail.SubjectMaximumStepsReached }
	if turns := h.agents.turns(); len(turns)-len(slices.DeleteFunc(turns, limit)) != 2 {
		t.Errorf("the turn that asked was not run to its end: %q", h.agents.turns())
	}
}
