package swarm_test

import (
	"context"
	"reflect"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// usage sums what is counted of all tenants.
func (h *hive) usage(by swarm.UsageBy) []swarm.UsageGroup {
	h.t.Helper()
	list, err := h.rt.Usage(h.t.Context(), swarm.UsageQuery{By: by})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// A turn counts once, with the calls of models of all its attempts, when the host stops in it
// and a later host runs it again on its record.
func TestUsageCountsATurnOnce(t *testing.T) {
	begun := make(chan struct{}, 1)
	first := true
	entry := func(n int64, model string, spend swarm.Spend) swarm.Entry {
		return swarm.Entry{N: n, Kind: swarm.EntryCall, Call: "1", Op: abi.OpLLMChat, Model: model, Spend: spend}
	}
	most, back, more := swarm.Spend{Tokens: 10, Output: 6, MicroUSD: 20}, swarm.Spend{Tokens: -3, Output: -2, MicroUSD: -6}, swarm.Spend{Tokens: 5, Output: 1, MicroUSD: 1}
	h := newHive(t, acts(func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		used, header := swarm.Usage{Fuel: 7}, turn.Header()
		if first {
			first = false
			if _, fault := turn.ReserveSpend(abi.OpLLMChat, "big", most); fault != nil {
				t.Error(fault)
			}
			if _, err := turn.Journal(swarm.JournalWrite{Header: &header, Entries: []swarm.Entry{entry(1, "big", most)}}); err != nil {
				t.Error(err)
			}
			begun <- struct{}{}
			<-ctx.Done()
			return swarm.Outcome{Usage: used, Failure: &swarm.Failure{Cause: "test", Message: "stopped"}}
		}
		turn.SettleSpend("big", dayOf(turn.Now()), back)
		if _, fault := turn.ReserveSpend(abi.OpLLMChat, "small", more); fault != nil {
			t.Error(fault)
		}
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{Usage: used, Record: &swarm.Record{
			End: &swarm.TurnEnd{Exit: "ok"}, Entries: []swarm.Entry{entry(2, "big", back), entry(3, "small", more)},
		}}
	}))
	h.mustPost("x", task("t"))
	<-begun
	h.restart()
	eventually(t, "the task ends", func() bool { return h.record("t").Task.State == swarm.StateCompleted })
	rec := h.record("t").Task
	groups := map[string]swarm.UsageSum{}
	for _, g := range h.usage(swarm.UsageByModel) {
		groups[g.Model] = g.UsageSum
	}
	want := map[string]swarm.UsageSum{
		"":      {Turns: 1, Fuel: int64(rec.Usage.Fuel), CPU: rec.Usage.CPU},
		"big":   {Spend: most.Add(back)},
		"small": {Spend: more},
	}
	if !reflect.DeepEqual(groups, want) || rec.Usage.Spend != most.Add(back).Add(more) {
		t.Errorf("usage %+v, want %+v; the task's is %+v", groups, want, rec.Usage)
	}
}

// A failed turn counts as a turn, and under its cause.
func TestUsageCountsFailures(t *testing.T) {
	h := newHive(t, acts(func(context.Context, *swarm.Turn) swarm.Outcome {
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "fuel", Message: "out of fuel"}}
	}))
	h.ask("x", task("t"))
	g := h.usage(swarm.UsageByAgent)
	if len(g) != 1 || g[0].Agent != "boss" || g[0].Turns != 1 || g[0].Failures != 1 || !reflect.DeepEqual(g[0].Causes, map[string]int64{"fuel": 1}) {
		t.Errorf("%+v", g)
	}
}

// The model whose call has failed last is the last of a turn's, also when it has failed before another one.
func TestLastModelFailure(t *testing.T) {
	h := newHive(t, acts(func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for _, model := range []string{"big-1", "small-1", "big-1"} {
			turn.NoteModelFailure(swarm.ModelFailure{Model: model, Kind: "unavailable", Cause: model})
		}
		header := turn.Header()
		return swarm.Outcome{Record: &swarm.Record{Header: &header, End: &swarm.TurnEnd{Exit: "ok"}}}
	}))
	h.mustPost("x", task("t"))
	eventually(t, "the turn is in the record", func() bool {
		turns, _, err := h.rt.Turns(t.Context(), h.record("t").Task.Key, 0, 10)
		return err == nil && len(turns) == 1 && turns[0].End != nil && reflect.DeepEqual(turns[0].End.ModelFailures, []swarm.ModelFailure{
			{Model: "small-1", Kind: "unavailable", Cause: "small-1", Count: 1}, {Model: "big-1", Kind: "unavailable", Cause: "big-1", Count: 2},
		})
	})
}

// A model that never answers counts with its failures under its name, and makes no turn fail that went on
// without it; the turn's record has why.
func TestUsageCountsFailuresOfModels(t *testing.T) {
	h := newHive(t, acts(func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for range 3 {
			turn.NoteModelFailure(swarm.ModelFailure{Model: "big-1", Kind: "unavailable", Cause: "models.big: connection refused"})
		}
		turn.NoteModelFailure(swarm.ModelFailure{Model: "big-1", Kind: "resting", Cause: "models.big: rests: connection refused"})
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		header := turn.Header()
		return swarm.Outcome{Record: &swarm.Record{Header: &header, End: &swarm.TurnEnd{Exit: "ok"}}}
	}))
	h.ask("x", task("t"))
	for _, g := range h.usage(swarm.UsageByModel) {
		want := map[string]int64{}
		if g.Model == "big-1" {
			want = map[string]int64{"unavailable": 3, "resting": 1}
		}
		if !reflect.DeepEqual(g.Causes, want) {
			t.Errorf("of %q: %+v", g.Model, g)
		}
	}
	for _, by := range []swarm.UsageBy{swarm.UsageByAgent, swarm.UsageByTenant, swarm.UsageByDay} {
		if g := h.usage(by); len(g) != 1 || g[0].Turns != 1 || g[0].Failures != 0 || len(g[0].Causes) != 0 {
			t.Errorf("by %s: %+v", by, g)
		}
	}
	of, err := h.rt.Usage(t.Context(), swarm.UsageQuery{By: swarm.UsageByAgent, Model: "big-1"})
	if err != nil || len(of) != 1 || of[0].Failures != 4 {
		t.Errorf("of the model alone: %+v, %v", of, err)
	}
	turns, _, err := h.rt.Turns(t.Context(), h.record("t").Task.Key, 0, 10)
	if err != nil || len(turns) != 1 || !reflect.DeepEqual(turns[0].End.ModelFailures, []swarm.ModelFailure{
		{Model: "big-1", Kind: "unavailable", Cause: "models.big: connection refused", Count: 3}, {Model: "big-1", Kind: "resting", Cause: "models.big: rests: connection refused", Count: 1},
	}) {
		t.Errorf("the turns: %+v, %v", turns, err)
	}
}
