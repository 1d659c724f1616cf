package gatewaytest_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
)

func start(t *testing.T, run gatewaytest.Agent) *gatewaytest.Runtime {
	t.Helper()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	for _, tenant := range []string{"a", "b"} {
		rt.Expose(tenant, gateway.ExposedAgent{Swarm: "s", Name: "calc", Entrypoint: true}, run)
	}
	return rt
}

// A repeat is the first exchange; another message under its id, an unknown agent and
// another tenant's exchange are refused.
func TestAsk(t *testing.T) {
	t.Parallel()
	rt, alice := start(t, gatewaytest.Echo), gatewaytest.User("a", "alice")
	ask := gateway.Ask{Kind: gateway.Asks, ID: "1", Swarm: "s", To: []string{"calc"}, Body: "hello"}
	x, err := rt.Ask(t.Context(), alice, ask)
	if err != nil {
		t.Fatal(err)
	}
	a, err := rt.Wait(t.Context(), x)
	if err != nil || a.Outcome != gateway.Done || a.Body != "hello" || a.From != "calc" {
		t.Fatalf("answer %+v, %v", a, err)
	}
	if again, err := rt.Ask(t.Context(), alice, ask); err != nil || !again.Duplicate || again.Task != x.Task {
		t.Fatalf("repeat %+v, %v", again, err)
	}
	ask.Digest[0] = 1
	if _, err := rt.Ask(t.Context(), alice, ask); !errors.Is(err, gateway.ErrConflict) {
		t.Fatalf("another message: %v", err)
	}
	ask.ID, ask.To = "2", []string{"other"}
	if _, err := rt.Ask(t.Context(), alice, ask); !errors.Is(err, gateway.ErrUnknown) {
		t.Fatalf("unknown agent: %v", err)
	}
	if _, err := rt.Find(t.Context(), gatewaytest.User("b", "alice"), "1"); !errors.Is(err, gateway.ErrUnknown) {
		t.Fatalf("foreign exchange: %v", err)
	}
	if list, err := rt.List(t.Context(), gatewaytest.User("a", "bob"), "", 10); err != nil || len(list) != 0 {
		t.Fatalf("foreign list: %v, %v", list, err)
	}
}

// A question ends a wait; its reply lets the agent go on, also over a call that waits
// for a person.
func TestQuestions(t *testing.T) {
	t.Parallel()
	rt := start(t, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turn.Progress("begins", -1)
		turn.Chunk("one")
		turn.Chunk("two")
		name, _, _ := turn.Question(ctx, gateway.Question{ID: "q", Text: "Who?"})
		_, failed, _ := turn.Question(ctx, gateway.Question{ID: "c", Call: "c", Text: "May I?"})
		if !failed {
			return gateway.Answer{Outcome: gateway.Failed}
		}
		return gateway.Answer{Body: name}
	})
	alice := gatewaytest.User("a", "alice")
	x, err := rt.Ask(t.Context(), alice, gateway.Ask{Kind: gateway.Asks, ID: "1", Swarm: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []gateway.Ask{
		{Kind: gateway.Answers, ID: "2", Answers: "q", Body: "bob"},
		{Kind: gateway.Resumes, ID: "3", Results: []gateway.CallResult{{Call: "c", Error: true}}},
	} {
		if a, err := rt.Wait(t.Context(), x); err != nil || a.Outcome != gateway.NeedsInput || len(a.Questions) != 1 {
			t.Fatalf("before %s: %+v, %v", reply.Kind, a, err)
		}
		if _, err := rt.Ask(t.Context(), gatewaytest.User("b", "alice"), reply); !errors.Is(err, gateway.ErrUnknown) {
			t.Fatalf("foreign reply: %v", err)
		}
		if same, err := rt.Ask(t.Context(), alice, reply); err != nil || same.ID != x.ID {
			t.Fatalf("reply: %+v, %v", same, err)
		}
	}
	if a, err := rt.Wait(t.Context(), x); err != nil || a.Outcome != gateway.Done || a.Body != "bob" {
		t.Fatalf("answer %+v, %v", a, err)
	}
	s, err := rt.Follow(t.Context(), x, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, kind := range []gateway.PieceKind{gateway.Progress, gateway.Chunk, gateway.Asked, gateway.Asked, gateway.End} {
		if p, err := s.Next(t.Context()); err != nil || p.Kind != kind {
			t.Fatalf("piece %+v, %v, want %s", p, err, kind)
		}
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
}

// A cancelled exchange ends its agent and stays cancelled.
func TestCancel(t *testing.T) {
	t.Parallel()
	rt := start(t, func(ctx context.Context, _ *gatewaytest.Turn) gateway.Answer {
		<-ctx.Done()
		return gateway.Answer{Body: "late"}
	})
	alice := gatewaytest.User("a", "alice")
	x, err := rt.Ask(t.Context(), alice, gateway.Ask{Kind: gateway.Asks, ID: "1", Swarm: "s"})
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("away")
	rt.FailNext("Cancel", away)
	if err := rt.Cancel(t.Context(), alice, "1", "enough"); !errors.Is(err, away) {
		t.Fatal(err)
	}
	if err := rt.Cancel(t.Context(), alice, "1", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Cancel(t.Context(), alice, "1", "enough"); !errors.Is(err, gateway.ErrConflict) {
		t.Fatal(err)
	}
	rt.Close()
	if a, err := rt.Wait(t.Context(), x); err != nil || a.Outcome != gateway.Cancelled {
		t.Fatalf("answer %+v, %v", a, err)
	}
}
