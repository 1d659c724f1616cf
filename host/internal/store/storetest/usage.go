package storetest

import (
	"errors"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var usageCases = cases{
	"sums by what is asked":             usageSums,
	"only what is committed counts":     usageOfCommits,
	"one group writes many":             usageTogether,
	"a week is kept":                    usagePurged,
	"an erased tenant has none":         usageErased,
	"negative corrections are summed":   usageCorrected,
	"a number beyond all bounds is cut": usageBounded,
}

func usageOf(t *testing.T, s Store, q swarm.UsageQuery) []swarm.UsageGroup {
	t.Helper()
	list, err := s.Usage(t.Context(), q)
	if err != nil {
		t.Fatalf("Usage(%+v) = %v", q, err)
	}
	return list
}

// wantTurnUsage compares one number of groups.
func wantTurnUsage(t *testing.T, s Store, q swarm.UsageQuery, number func(swarm.UsageGroup) int64, want ...int64) {
	t.Helper()
	var got []int64
	for _, g := range usageOf(t, s, q) {
		got = append(got, number(g))
	}
	same(t, "usage", got, want)
}

func turnsOf(g swarm.UsageGroup) int64  { return g.Turns }
func tokensOf(g swarm.UsageGroup) int64 { return g.Tokens }

// commitUsage commits what turns have used at a time.
func commitUsage(t *testing.T, s Store, st *taskBuilder, at time.Time, list ...swarm.UsageCount) {
	t.Helper()
	step := st.mutation()
	step.Task.Updated, step.Usage = at, list
	mustCommit(t, s, step)
}

func turned(agent string, turns int64) swarm.UsageCount {
	return swarm.UsageCount{UsageKey: swarm.UsageKey{Agent: agent}, UsageSum: swarm.UsageSum{Turns: turns, Fuel: 10 * turns, CPU: time.Duration(turns)}}
}

func failed(agent, cause string) swarm.UsageCount {
	return swarm.UsageCount{UsageKey: swarm.UsageKey{Agent: agent, Cause: cause}, UsageSum: swarm.UsageSum{Failures: 1}}
}

func called(agent, model string, tokens int64) swarm.UsageCount {
	return swarm.UsageCount{UsageKey: swarm.UsageKey{Agent: agent, Model: model}, UsageSum: swarm.UsageSum{
		Spend: swarm.Spend{Tokens: tokens, Output: tokens / 2, MicroUSD: 3 * tokens}}}
}

func usageSums(t *testing.T, s Store) {
	acme := swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:bob"}
	other := acme
	other.Tenant = "other"
	at := time.Date(2026, 11, 20, 10, 59, 30, 0, time.UTC)
	one, two := newTask(acme, "t1"), newTask(other, "t2")
	commitUsage(t, s, one, at, turned("a", 1), called("a", "big", 100), failed("a", "trap"))
	commitUsage(t, s, one, at.Add(29*time.Second), turned("a", 2), turned("b", 1), called("b", "small", 7))
	commitUsage(t, s, one, at.Add(time.Minute), turned("a", 4), called("a", "big", 11), failed("a", "fuel"), failed("a", "trap"))
	commitUsage(t, s, two, at, turned("a", 8))

	all := swarm.UsageSum{Turns: 16, Failures: 3, Fuel: 160, CPU: 16, Spend: swarm.Spend{Tokens: 118, Output: 58, MicroUSD: 354}}
	var sum swarm.UsageSum
	for _, by := range []swarm.UsageBy{swarm.UsageByTenant, swarm.UsageByAgent, swarm.UsageByModel, swarm.UsageByMinute, swarm.UsageByHour, swarm.UsageByDay} {
		sum = swarm.UsageSum{}
		for _, g := range usageOf(t, s, swarm.UsageQuery{By: by}) {
			sum = sum.Add(g.UsageSum)
		}
		same(t, "all by "+string(by), sum, all)
	}
	groups := usageOf(t, s, swarm.UsageQuery{Tenant: "acme", By: swarm.UsageByAgent})
	same(t, "agent a", groups[0], swarm.UsageGroup{Tenant: "acme", Agent: "a", Causes: map[string]int64{"trap": 2, "fuel": 1}, UsageSum: swarm.UsageSum{
		Turns: 7, Failures: 3, Fuel: 70, CPU: 7, Spend: swarm.Spend{Tokens: 111, Output: 55, MicroUSD: 333}}})
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByAgent}, turnsOf, 7, 1, 8)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant}, turnsOf, 8, 8)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByModel}, tokensOf, 0, 111, 7)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByMinute}, turnsOf, 12, 4)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByHour}, turnsOf, 12, 4)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByDay}, turnsOf, 16)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Agent: "b"}, turnsOf, 1)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Model: "small"}, tokensOf, 7)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Agent: "a", Model: "small"}, tokensOf)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Tenant: "nobody"}, turnsOf)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Since: at.Add(time.Minute)}, turnsOf, 4)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Until: at.Add(30 * time.Second)}, turnsOf, 4, 8)
	same(t, "time", usageOf(t, s, swarm.UsageQuery{By: swarm.UsageByHour})[1].At, time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC))
}

// usageOfCommits commits what is refused, and twice the same post.
func usageOfCommits(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	step.Usage = []swarm.UsageCount{turned("a", 1)}
	mustAccept(t, s, step, post)
	_, err := s.Accept(t.Context(), step, post)
	wantError(t, "Accept", err, swarm.ErrDuplicate)
	gone := st.mutation()
	gone.Usage = []swarm.UsageCount{turned("a", 2)}
	gone.Record = &swarm.Record{N: 99, Entries: []swarm.Entry{call(1, "of no turn")}, End: end("ok")}
	if err := s.Commit(t.Context(), gone); err == nil {
		t.Fatal("a record without a turn is committed")
	}
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByAgent}, turnsOf, 1)
}

func usageTogether(t *testing.T, s Store) {
	const writers, steps = 8, 10
	done := make(chan error, writers)
	for i := range writers {
		st := newTask(alice, name(i))
		go func() {
			var all error
			for range steps {
				step := st.mutation()
				step.Usage = []swarm.UsageCount{turned("a", 1), called("a", "m", 2)}
				all = errors.Join(all, s.Commit(t.Context(), step))
			}
			done <- all
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant}, turnsOf, writers*steps)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByModel}, tokensOf, 0, 2*writers*steps)
}

func usagePurged(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	now := start.Add(30 * 24 * time.Hour)
	for _, age := range []time.Duration{0, swarm.UsageKept - time.Minute, swarm.UsageKept + time.Minute, 20 * 24 * time.Hour} {
		commitUsage(t, s, st, now.Add(-age), turned("a", 1))
	}
	if _, err := s.Purge(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant}, turnsOf, 2)
}

func usageErased(t *testing.T, s Store) {
	acme := swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:bob"}
	at := start
	for range 600 { // more than one slice
		at = at.Add(time.Minute)
		commitUsage(t, s, newTask(acme, "t1"), at, turned("a", 1))
	}
	commitUsage(t, s, newTask(alice, "t2"), start, turned("a", 3))
	mustErase(t, s, "acme")
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant, Tenant: "acme"}, turnsOf)
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant}, turnsOf, 3)
}

func usageCorrected(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	commitUsage(t, s, st, start, called("a", "m", 100))
	commitUsage(t, s, st, start, called("a", "m", -40))
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByModel}, tokensOf, 60)
}

func usageBounded(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for range 3 {
		commitUsage(t, s, st, start, swarm.UsageCount{UsageSum: swarm.UsageSum{Fuel: 1<<63 - 1}})
	}
	wantTurnUsage(t, s, swarm.UsageQuery{By: swarm.UsageByTenant}, func(g swarm.UsageGroup) int64 { return g.Fuel }, 3<<50)
}
