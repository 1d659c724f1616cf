package contract

import (
	"context"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// request is the script that asks a foreign agent and completes the task with its answer.
func request(target, text string) string {
	return hosttest.Script(hosttest.Step{"send_request", hosttest.Args{"target": target, "subject": "s", "body": text}}, hosttest.Step{"await_message", hosttest.Args{}})
}

// ask has a person of the host ask a foreign agent, and returns the answer.
func (s *suite) ask(t *testing.T, target, text string) string {
	t.Helper()
	got, err := s.as(t, aliceToken).PostMessage(t.Context(), client.Post{Task: id(t, "task"), Entrypoint: "boss", Body: request(target, text)})
	if err != nil {
		t.Fatal(err)
	}
	return got.Body
}

// askOut: a foreign agent is asked and its answer reaches the agent, at once or by pieces.
func (s *suite) askOut(t *testing.T) {
	if got := s.ask(t, s.peer, "how many?"); !strings.HasSuffix(got, "echo: how many?") {
		t.Errorf("got %q", got)
	}
	s.foreign.on("in pieces", func(_ context.Context, _ Message, show func(Piece)) (State, error) {
		show(Piece{N: 0, Chunk: "three "})
		show(Piece{N: 1, Chunk: "pieces"})
		return State{Status: Done, Text: "three pieces"}, nil
	})
	t.Run("in pieces", func(t *testing.T) {
		if got := s.ask(t, s.peer, "in pieces"); !strings.HasSuffix(got, "three pieces") {
			t.Errorf("got %q", got)
		}
	})
	for _, text := range []string{"how many?", "in pieces"} {
		if n := len(s.foreign.got(text)); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

// tellOut: what an agent tells leaves once, and nothing is waited for.
func (s *suite) tellOut(t *testing.T) {
	body := hosttest.Script(
		hosttest.Step{"send_broadcast", hosttest.Args{"targets": []string{s.peer}, "subject": "s", "body": "by the way"}}, finish("told"))
	got, err := s.as(t, aliceToken).PostMessage(t.Context(), client.Post{Task: id(t, "task"), Entrypoint: "boss", Body: body})
	if err != nil || got.Body != "told" {
		t.Fatalf("got %+v, %v", got, err)
	}
	settled(t, "it is told", func() bool { return len(s.foreign.got("by the way")) > 0 })
}

// foreignError: what a foreign agent refuses reaches ours as an answer with the reason.
func (s *suite) foreignError(t *testing.T) {
	s.foreign.on("refuse", func(context.Context, Message, func(Piece)) (State, error) {
		return State{}, &Refused{Invalid, "that is no question"}
	})
	s.foreign.on("fail", func(context.Context, Message, func(Piece)) (State, error) {
		return State{Status: Failed, Text: "out of paper"}, nil
	})
	for text, want := range map[string]string{"refuse": "that is no question", "fail": "out of paper"} {
		t.Run(text, func(t *testing.T) {
			if got := s.ask(t, s.peer, text); !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// cancelOut: an interrupt that cancels reaches the foreign agent while it works.
func (s *suite) cancelOut(t *testing.T) {
	begun, withdrawn := make(chan struct{}), make(chan struct{})
	s.foreign.on("long work", func(ctx context.Context, _ Message, show func(Piece)) (State, error) {
		show(Piece{Chunk: "begun"})
		close(begun)
		<-ctx.Done()
		close(withdrawn)
		return State{Status: Cancelled, Text: "stopped"}, nil
	})
	c, task := s.as(t, aliceToken), id(t, "task")
	if _, err := c.PostAsync(t.Context(), client.Post{Task: task, Entrypoint: "boss", Body: request(s.p.agentOf("depot"), "long work")}); err != nil {
		t.Fatal(err)
	}
	until(t, "the foreign agent works", begun)
	stop := hosttest.Script(hosttest.Step{"send_interrupt", hosttest.Args{"target": s.p.agentOf("depot"), "subject": "cancel", "body": "stop"}}, hosttest.Step{"await_message", hosttest.Args{}})
	if _, err := c.PostAsync(t.Context(), client.Post{Task: task, Entrypoint: "boss", Body: stop}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is withdrawn", withdrawn)
}
