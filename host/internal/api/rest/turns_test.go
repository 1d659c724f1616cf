package rest_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
)

// journal writes two calls of a turn, of which the first run has made one.
func journal(t *swarm.Turn) error {
	h := t.Header()
	_, err := t.Journal(swarm.JournalWrite{Header: &h, Entries: []swarm.Entry{
		{N: 1, Call: "1", Kind: swarm.EntryCall, Op: abi.OpKVGet}, {N: 2, Kind: swarm.EntryRun, Index: 2},
		{N: 3, Call: "2", Kind: swarm.EntryIntent, Op: abi.OpHTTPFetch}, {N: 4, Call: "2", Kind: swarm.EntryAnswer, Op: abi.OpHTTPFetch},
	}})
	return err
}

// recorded ends a turn with a record, as an executor would that ran a guest.
func recorded(t *swarm.Turn, raw json.RawMessage) swarm.Outcome {
	end := &swarm.TurnEnd{}
	if err := json.Unmarshal(raw, end); err != nil {
		return failure(err)
	}
	h := t.Header()
	out := swarm.Outcome{Usage: end.Usage, Record: &swarm.Record{Header: &h, End: end}}
	if end.Exit != "ok" {
		out.Failure = &swarm.Failure{Cause: end.Exit, Message: "a test"}
	}
	return out
}

// turnsPage is a page of turns.
type turnsPage struct {
	Task  string `json:"task_id"`
	Turns []struct {
		Turn       int64
		Agent      string
		Start, End *time.Time
		Exit       *string
		Attempt    int
		Ops        map[string]int64
		Usage      map[string]float64
		Spans      []obj
	}
	Next *int64
}

// A turn lists the spans of its agent.
func TestSpansOfTurns(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	h.postAndWait(obj{"task_id": "t", "body": calls("mark", obj{}, "record", swarm.TurnEnd{Exit: "ok"})})
	h.postAndWait(obj{"task_id": "t", "body": calls("record", swarm.TurnEnd{Exit: "ok"})})
	var page turnsPage
	h.do(request{path: "/skep/v1/tasks/t/turns"}).json(t, &page)
	for _, s := range page.Turns[0].Spans {
		if s["offset_ms"].(float64) < 0 || s["duration_ms"].(float64) < 0 {
			t.Errorf("%v", s)
		}
		delete(s, "offset_ms")
		delete(s, "duration_ms")
	}
	want := []obj{
		{"name": "a", "attributes": map[string]any{"city": "Oslo", "hits": "3"}, "error": "is empty"},
		{"name": "b", "parent": 1.0, "cut": true},
	}
	if diff := cmp.Diff(want, page.Turns[0].Spans); diff != "" || page.Turns[1].Spans != nil {
		t.Errorf("%v, -want +got\n%s", page.Turns[1].Spans, diff)
	}
}

// mark begins two spans and ends one.
func mark(t *swarm.Turn) {
	_, _ = t.BeginSpan("", abi.SpanRequest{Name: "a", Attributes: map[string]string{"city": "Oslo"}})
	_, _ = t.BeginSpan("", abi.SpanRequest{Name: "b"})
	_ = t.EndSpan("", abi.SpanRequest{ID: 1, Attributes: map[string]string{"hits": "3"}, Error: "is empty"})
}

// Each turn lists its usage and its ops, also one without mail and a failed one;
// a running one lists what is durable.
func TestTurns(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	usage := swarm.Usage{Fuel: 9, CPU: 1500 * time.Microsecond, HostCalls: 4, Fetches: 1, FetchBytes: 77, Spend: swarm.Spend{Tokens: 12, MicroUSD: 34}}
	ops := map[abi.Op]int64{abi.OpKVPut: 3, abi.OpHTTPFetch: 1, 999: 2}
	h.postAndWait(obj{"task_id": "t", "body": calls("record", swarm.TurnEnd{Exit: "ok", Attempt: 2, Calls: ops, Usage: usage})})
	h.postAndWait(obj{"task_id": "t", "body": calls("record", swarm.TurnEnd{Exit: "fuel", Usage: usage})})
	h.post(obj{"task_id": "t", "body": calls("journal", obj{}, "gate", obj{"name": "never"})}, "Prefer", "respond-async")
	var page turnsPage
	eventually(t, "the turn that runs is recorded", func() bool {
		h.do(request{path: "/skep/v1/tasks/t/turns"}).json(t, &page)
		return len(page.Turns) == 3
	})
	cost := map[string]float64{"fuel": 9, "cpu_ms": 1.5, "host_calls": 4, "fetches": 1, "fetch_bytes": 77, "tokens": 12, "micro_usd": 34}
	for i, want := range []struct {
		exit    string
		attempt int
		ops     map[string]int64
		usage   map[string]float64
	}{
		{"ok", 2, map[string]int64{"kv.put": 3, "http.fetch": 1, "op 999": 2}, cost},
		{"fuel", 1, map[string]int64{}, cost},
		{"", 2, map[string]int64{"kv.get": 1, "http.fetch": 1}, nil},
	} {
		got := page.Turns[i]
		if wall := got.Usage["wall_ms"]; want.usage != nil && math.Abs(wall-float64(got.End.Sub(*got.Start))/1e6) > 0.01 {
			t.Errorf("turn %d: wall_ms %v from %v to %v, which are cut to microseconds", got.Turn, wall, got.Start, got.End)
		}
		delete(got.Usage, "wall_ms")
		if (got.End == nil) != (want.exit == "") || (got.Exit == nil) != (want.exit == "") || got.Exit != nil && *got.Exit != want.exit ||
			got.Agent != "boss" || got.Start == nil || got.Attempt != want.attempt {
			t.Errorf("%+v, want %+v", got, want)
		}
		if diff := cmp.Diff(want.ops, got.Ops) + cmp.Diff(want.usage, got.Usage); diff != "" {
			t.Errorf("turn %d (-want +got)\n%s", got.Turn, diff)
		}
	}
	var task struct{ Usage map[string]float64 }
	h.do(request{path: "/skep/v1/tasks/t"}).json(t, &task)
	if task.Usage["fetches"] != 2 || task.Usage["fetch_bytes"] != 154 {
		t.Errorf("the task has cost %v", task.Usage)
	}
}

func TestTurnsByPage(t *testing.T) {
	t.Parallel()
	h := newTestHost(t)
	for range 5 {
		h.postAndWait(obj{"task_id": "t", "body": calls("record", swarm.TurnEnd{Exit: "ok"})})
	}
	var numbers []int64
	for after := int64(0); ; {
		var page turnsPage
		h.do(request{path: fmt.Sprintf("/skep/v1/tasks/t/turns?limit=2&after=%d", after)}).json(t, &page)
		for _, turn := range page.Turns {
			numbers = append(numbers, turn.Turn)
		}
		if page.Task != "t" || len(page.Turns) > 2 {
			t.Errorf("%+v", page)
		}
		if page.Next == nil {
			break
		}
		after = *page.Next
	}
	if len(numbers) != 5 || numbers[0] != 1 {
		t.Errorf("turns %v", numbers)
	}
	h.postAndWait(obj{"task_id": "bare", "body": "b"}) // its executor keeps no record
	if a := h.do(request{path: "/skep/v1/tasks/bare/turns"}); a.body != `{"task_id":"bare","turns":[],"next":null}` {
		t.Errorf("without a record: %s", a.body)
	}
	for query, want := range map[string]string{
		"limit=0": "limit must be a number from 1 to 500", "limit=501": "limit must be a number from 1 to 500",
		"after=-1": "after must be a number from 0 to 9007199254740992",
	} {
		if a := h.do(request{path: "/skep/v1/tasks/t/turns?" + query}); a.status != http.StatusBadRequest || a.body != detail(want) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}
