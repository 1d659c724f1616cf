package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// killShapes are guests that never end, each in another way.
func killShapes() []craftedModule {
	fib := &asm{}
	self := fib.fn(fib.typ(1, 1), 0, get(0), konst(2), op(0x48, 0x04, valueI32), get(0), op(0x05),
		get(0), konst(1), op(0x6b), callFn(0), get(0), konst(2), op(0x6b), callFn(0), op(0x6a, 0x0b))
	deep := &asm{}
	down := deep.fn(deep.typ(1, 1), 0, get(0), op(0x45, 0x04, valueI32), loop(br(0)), konst(0), op(0x05),
		get(0), konst(1), op(0x6b), callFn(0), op(0x0b))
	return []craftedModule{
		{"loop", (&asm{}).agent(1, loop(br(0)), konst(0))},
		{"recursion, fib(60)", fib.agent(1, konst(60), callFn(self))},
		{"recursion, 60,000 deep", deep.agent(1, konst(60_000), callFn(down))},
		{"memory.fill of 32 MiB", (&asm{}).agent(512, loop(konst(0), konst(1), konst(32<<20), op(0xfc, 11, 0), br(0)), konst(0))},
		{"br_table of 5,000 labels", (&asm{}).agent(1, loop(get(0), brTable(5_000, 0)), konst(0))},
	}
}

const killSamples = 100 // in a round

// killAfter spreads the deadlines over what a guest does in its first
// milliseconds: it may be busy with its stack or with fresh memory.
func killAfter(sample int) time.Duration {
	return time.Millisecond + time.Duration(sample%9)*500*time.Microsecond
}

// endless are the limits of a turn that only its context ends.
var endless = turn.Limits{Fuel: math.MaxInt64, CPU: time.Hour}

// kills measures how late turns end, beside a bare timer.
func kills(b *bench) {
	engine := must(newEngine(b.ctx, wasm.Options{}))
	defer engine.Close(b.ctx)
	shapes := killShapes()
	modules := make([]*wasm.Module, len(shapes))
	for i, s := range shapes {
		modules[i] = must(engine.Load(b.ctx, wasm.Source{Name: s.name, Wasm: s.wasm, Trusted: true}))
		// The image is made once, not in the first sample.
		must(lateness(b.ctx, stopped(modules[i]), time.Millisecond))
	}
	all := sampleKills(b, shapes, modules)
	timer, busy, late := all[0], all[1], all[2:]
	b.report.compare("a Go loop that asks the clock, p99 late", percentile(busy, 99), seconds, "bare timer", percentile(timer, 99), none())
	for i, s := range shapes {
		b.report.compare(s.name+", p50 late", percentile(late[i], 50), seconds, "bare timer", percentile(timer, 50), none())
		b.report.compare(s.name+", p99 late", percentile(late[i], 99), seconds, "bare timer", percentile(timer, 99), within(time.Millisecond))
	}
	pauses(b, modules[0])
}

// sampleKills returns how late the bare timer was, then a busy loop, then each
// shape, sample by sample in turn.
func sampleKills(b *bench, shapes []craftedModule, modules []*wasm.Module) [][]float64 {
	waits := []func(context.Context) error{bareTimer, busyLoop}
	names := []string{"bare timer", "busy loop"}
	for i, m := range modules {
		waits, names = append(waits, stopped(m)), append(names, shapes[i].name)
	}
	late := make([][]float64, len(waits))
	for n := range killSamples * b.rounds {
		for i, wait := range waits {
			l, err := lateness(b.ctx, wait, killAfter(n))
			check(named(names[i], err))
			late[i] = append(late[i], l)
		}
	}
	return late
}

// lateness is by how much something outlasts its deadline, in seconds.
func lateness(ctx context.Context, wait func(context.Context) error, after time.Duration) (float64, error) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(after))
	defer cancel()
	err := wait(ctx)
	return (time.Since(start) - after).Seconds(), err
}

func bareTimer(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// busyLoop computes until its deadline, as a guest does: what it is late, the
// machine is late.
func busyLoop(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	for time.Now().Before(deadline) {
	}
	return nil
}

// stopped is a turn that its deadline must stop.
func stopped(m *wasm.Module) func(context.Context) error {
	return func(ctx context.Context) error {
		res := m.Turn(ctx, turn.Turn{Clock: &clock{time.Now()}, Limits: endless})
		if res.Exit == nil || res.Exit.Kind != turn.ExitDeadline {
			return fmt.Errorf("it should have been stopped at its deadline, and ended with %v", res.Exit)
		}
		return nil
	}
}
