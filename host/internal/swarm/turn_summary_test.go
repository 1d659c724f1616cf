package swarm_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A page of turns whose journals must be read for it is short when these are long.
func TestTurnsThatAreUnfinished(t *testing.T) {
	h := newHive(t)
	var begun sync.WaitGroup
	begun.Add(2)
	long := func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		header := turn.Header()
		_, err := turn.Journal(swarm.JournalWrite{Header: &header, Entries: []swarm.Entry{
			{N: 1, Kind: swarm.EntryCall, Call: "1", Op: abi.OpHistory, Answer: bytes.Repeat([]byte("x"), swarm.PageBytes)},
		}})
		if err != nil {
			t.Error(err)
		}
		begun.Done()
		<-ctx.Done()
		return failed(ctx.Err())
	}
	h.agents.by["math"], h.agents.by["text"] = long, long
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		for _, to := range []string{"math", "text"} {
			call(turn, mail.ToolSendRequest, obj{"target": to, "subject": "s", "body": "b"})
		}
		header := turn.Header()
		return swarm.Outcome{Record: &swarm.Record{Header: &header, End: &swarm.TurnEnd{Exit: "ok"}}}
	}
	h.mustPost("x", task("t"))
	begun.Wait()
	var agents []string
	after, more := int64(0), true
	for pages := 0; more; pages++ {
		page, rest, err := h.rt.Turns(t.Context(), key("t"), after, 100)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d turns, %v", len(page), err)
		}
		if want := []int{2, 1}; pages > 1 || len(page) != want[pages] {
			t.Errorf("page %d has %d turns", pages, len(page))
		}
		for _, s := range page {
			agents = append(agents, s.Agent)
			if (s.End == nil) != (s.Agent != "boss") || s.End == nil && s.Calls[abi.OpHistory] != 1 || s.Attempt != 1 {
				t.Errorf("%+v", s)
			}
		}
		after, more = page[len(page)-1].N, rest
	}
	if len(agents) != 3 {
		t.Errorf("turns of %q", agents)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.rt.Turns(gone, key("t"), 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
