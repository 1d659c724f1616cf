package door_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// Several agents that one message asks have exchanges of their own, which are found by its id
// and their names, withdrawn one by one, and read as one stream in the order of the log (U-069).
func TestSeveralAgentsAreRead(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	release := make(chan struct{})
	k.agents.set("calc", func(_ context.Context, tn *swarm.Turn) swarm.Outcome {
		text := "a chunk"
		tn.Emit(abi.EmitRequest{Chunk: &text})
		return respond(tn, "4")
	})
	k.agents.set("boss", func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return respond(tn, "done")
	})
	c := acme()
	c.May = append(c.May, gateway.MayBroadcast)
	both := ask("m1", "calc", "x", func(a *gateway.Ask) { a.To = []string{"calc", "boss"} })
	first := k.mustAsk(t, c, both)
	if first.Agent != "boss" || first.ID != "m1" {
		t.Fatalf("the first by name is %+v", first)
	}
	other, err := k.Find(t.Context(), c, gateway.OtherID("m1", "calc"))
	if err != nil || other.Agent != "calc" || other.Message() != "m1" || other.Task != first.Task {
		t.Fatalf("%+v, %v", other, err)
	}
	read := func(most int) (list []string) {
		s, err := k.FollowEach(t.Context(), []gateway.Exchange{first, other})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for len(list) < most {
			p, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind == gateway.End {
				p.Text = p.Answer.Body
			}
			list = append(list, fmt.Sprint(p.Agent, " ", p.Kind, " ", p.Text))
		}
		return list
	}
	want := []string{"calc chunk a chunk", "calc end 4", "boss end done"}
	if got := read(2); !slices.Equal(got, want[:2]) {
		t.Errorf("before the other has ended: %q", got)
	}
	close(release)
	for range 2 {
		if got := read(len(want) + 1); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	if again := k.mustAsk(t, c, both); !again.Duplicate || again.Agent != "boss" || k.agents.count() != 2 {
		t.Errorf("%+v after %d turns", again, k.agents.count())
	}
	if err := k.Cancel(t.Context(), c, other.ID, ""); !errors.Is(err, gateway.ErrConflict) {
		t.Errorf("an answered one is cancelled: %v", err)
	}
}

// One of several exchanges is withdrawn alone: the other goes on.
func TestOneOfSeveralIsWithdrawn(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	release := make(chan struct{})
	wait := func(ctx context.Context, tn *swarm.Turn) swarm.Outcome {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return respond(tn, "done")
	}
	k.agents.set("calc", wait)
	k.agents.set("boss", wait)
	c := acme()
	c.May = append(c.May, gateway.MayBroadcast)
	first := k.mustAsk(t, c, ask("m1", "calc", "x", func(a *gateway.Ask) { a.To = []string{"calc", "boss"} }))
	if err := k.Cancel(t.Context(), c, gateway.OtherID("m1", "calc"), ""); err != nil {
		t.Fatal(err)
	}
	other, err := k.Find(t.Context(), c, gateway.OtherID("m1", "calc"))
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, k.wait(t, other), gateway.Cancelled, "The request was cancelled.")
	close(release)
	wantAnswer(t, k.wait(t, first), gateway.Done, "done")
}
