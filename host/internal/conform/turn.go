package conform

import (
	"context"
	"fmt"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/spec/conformance"
)

// Outcome is how a turn ended, and what it asked for on the way.
type Outcome struct {
	Exit    string
	Message string
	Output  []byte
	Ops     []conformance.Op
	Fuel    uint64

	status    abi.Status
	began     bool   // skep_turn was called
	startFuel uint64 // what the start of the module took, where it ran
}

// Agent runs turns and actions, at whatever level of isolation.
type Agent interface {
	Turn(ctx context.Context, t turn.Turn) turn.Result
	Action(ctx context.Context, t turn.Turn) turn.Result
}

// Run plays one vector.
func Run(ctx context.Context, m Agent, v conformance.Turn) Outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &script{vector: v, clock: newClock(), off: make(chan struct{})}
	run := m.Turn
	if v.Action {
		run = m.Action
	}
	r := run(ctx, turn.Turn{
		Input: v.Input, Seed: [32]byte{1}, Clock: s.clock, Ops: s, Cancelled: s.off,
		Limits: turn.Limits{Output: v.OutputLimit},
	})
	return outcome(r, s.asked)
}

func outcome(r turn.Result, asked []conformance.Op) Outcome {
	out := Outcome{Output: r.Output, Ops: asked, Fuel: r.Fuel, status: r.Status, startFuel: r.StartFuel}
	if r.Exit != nil {
		out.Exit, out.Message = string(r.Exit.Kind), r.Exit.Message
	}
	return out
}

func request(req []byte) string {
	if string(req) == "{}" {
		return ""
	}
	return string(req)
}

// code finds a code by its name. A vector that names another is a fault of ours.
func code(name string) abi.Code {
	for c := abi.CodeInvalid; c <= abi.CodeInternal; c++ {
		if c.String() == name {
			return c
		}
	}
	panic(fmt.Sprintf("conform: a vector names the code %q", name))
}

// clock is the turn's clock. A sleep moves it and waits for nothing.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 9, 30, 0, 250_000_000, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Advance(to time.Time) { c.now = to }

func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}
