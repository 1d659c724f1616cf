package swarm_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// An agent that uses up its computing time turn after turn rests: its next turns fail
// without being run, and say until when. After the rest one turn tries it, and a turn
// that ends well ends the rest. Other agents and tenants run on.
func TestLoopingAgentRests(t *testing.T) {
	log := &loglines{}
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	move := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	h := newHive(t, func(h *hive) {
		h.opt.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		h.opt.Logger = slog.New(slog.NewTextHandler(log, nil))
		h.def.Limits.AgentRestAfter, h.def.Limits.AgentRest, h.def.Limits.TaskTimeout = 3, time.Minute, 0
	})
	runs, loops := 0, true
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		runs++
		if loops {
			return swarm.Outcome{Failure: &swarm.Failure{Cause: "cpu", Message: "used up its computing time of 10s", Limit: "limits.cpu"}}
		}
		return script(ctx, turn)
	}
	rests := func(a swarm.Answer) bool { return strings.Contains(a.Body, `agent "boss" failed (resting)`) }
	for range 3 {
		if a := h.ask("x"); rests(a) || !strings.Contains(a.Body, "(cpu)") {
			t.Fatalf("before the rest: %+v", a)
		}
	}
	if a := h.ask("x"); !rests(a) || !strings.Contains(a.Body, "until 2026-03-01T09:31:00") || !strings.Contains(a.Body, "used up its computing time of 10s") ||
		!strings.Contains(a.Body, "agent_rest_after") || runs != 3 || h.rt.CountResting() != 1 {
		t.Fatalf("%d runs, %d rest: %+v", runs, h.rt.CountResting(), a)
	}
	move(time.Minute)
	if a := h.ask("x"); rests(a) || runs != 4 {
		t.Errorf("the try: %d runs, %+v", runs, a)
	}
	if a := h.ask("x"); !rests(a) || runs != 4 {
		t.Errorf("after the try: %d runs, %+v", runs, a)
	}
	move(time.Minute)
	loops = false
	for range 2 {
		if a := h.ask("[]"); rests(a) {
			t.Errorf("after the rest: %+v", a)
		}
	}
	if n := log.count("an agent rests:"); n != 1 {
		t.Errorf("the rest is logged %d times", n)
	}
	if n := log.count("an agent rests no more"); n != 1 || h.rt.CountResting() != 0 {
		t.Errorf("its end is logged %d times, %d rest", n, h.rt.CountResting())
	}
	loops = true
	for range 3 {
		h.ask("x")
	}
	if n := h.rt.CountResting(); n != 1 {
		t.Errorf("%d agents rest, want 1", n)
	}
	if err := h.rt.EraseTenant(t.Context(), swarm.DefaultTenant, nil); err != nil {
		t.Fatal(err)
	}
	if n := h.rt.CountResting(); n != 0 {
		t.Errorf("%d agents of an erased tenant rest", n)
	}
}
