package wasm

import (
	"skep/host/internal/turn"
	"testing"
	"time"
)

// What a start takes is told by the turn that made it, and by no other.
func TestStartIsCounted(t *testing.T) {
	t.Parallel()
	work := loop(join(get(0), i32c(1), op(0x6a), op(0x22, 0), i32c(100_000), op(0x49), brIf(0)))
	b := newBuilder()
	b.fn("skep_warm", "", "i", "i", work, ok)
	m := load(t, b.agent("", ok))
	for n := range 3 {
		r := play(t, m, turn.Turn{})
		wantExit(t, r.Exit, "", "")
		if made := n == 0; (r.StartFuel > 100_000) != made || (r.StartCPU > 0) != made || r.Fuel > 1000 {
			t.Errorf("turn %d: %d units and %v, and then %d", n, r.StartFuel, r.StartCPU, r.Fuel)
		}
	}
	m = load(t, b.bytes())
	m.noImageReason = "the test says so"
	first, second := play(t, m, turn.Turn{}), play(t, m, turn.Turn{})
	if first.StartFuel < 100_000 || second.StartFuel != first.StartFuel {
		t.Errorf("a module without an image: %d and %d units", first.StartFuel, second.StartFuel)
	}
}

// A start that hits a limit says so, names the key that raises it, and counts.
func TestStartThatHitsALimit(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.fn("_initialize", "", "", "", forever())
	m := load(t, b.agent("", ok))
	r := play(t, m, turn.Turn{Limits: turn.Limits{Start: fuel}})
	wantExit(t, r.Exit, turn.ExitFuel, turn.KeyFuel)
	const want = "fuel: used up its fuel of the start of 5000000 units; limits.fuel allows more"
	if r.Exit.Error() != want || r.StartFuel < fuel || r.Fuel != 0 {
		t.Errorf("%v after %d and %d units", r.Exit, r.StartFuel, r.Fuel)
	}
	run := newRun(t.Context(), m, turn.Turn{Clock: newClock(), Limits: turn.Limits{Start: 1 << 60}})
	run.token.limit = 10 * time.Millisecond
	exit := run.guard(run.start)
	wantExit(t, exit, turn.ExitCPU, turn.KeyCPU)
	if want := "cpu: used up its computing time of the start of 10ms; limits.cpu allows more"; exit.Error() != want {
		t.Errorf("%v, want %s", exit, want)
	}
	if res := run.result(exit); res.StartCPU < 10*time.Millisecond || res.CPU != 0 {
		t.Errorf("%v of the start, %v of the turn", res.StartCPU, res.CPU)
	}
}

// The budget of the start grows with the keys that an exit names.
func TestStartLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits turn.Limits
		fuel   uint64
		cpu    time.Duration
	}{
		{turn.Limits{}, 500_000_000, 10 * time.Second},
		{turn.Limits{Fuel: 1000, CPU: time.Second}, 500_000_000, startCPU},
		{turn.Limits{Fuel: 900_000_000, CPU: time.Minute}, 900_000_000, time.Minute},
	} {
		r := newRun(t.Context(), goGuest(t, "plugins/script"), turn.Turn{Limits: tt.limits})
		if r.meter.limit != tt.fuel || r.token.limit != tt.cpu {
			t.Errorf("%+v: %d units, %v", tt.limits, r.meter.limit, r.token.limit)
		}
	}
}
