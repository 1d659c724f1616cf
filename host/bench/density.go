package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

const (
	parkedMany  = 200
	freshMany   = 50
	blockedMany = 2000
	gib         = 1 << 30
	// fillMost bounds the sandboxes of one process: each takes a few of the
	// 65,530 mappings that Linux gives it.
	fillMost = 14_000
)

// boundless is a pool that gives nothing up.
var boundless = wasm.Options{
	IdlePerModule: wasm.IdleLimits{Count: math.MaxInt32, Bytes: math.MaxInt64},
	IdleTotal:     wasm.IdleLimits{Count: math.MaxInt32, Bytes: math.MaxInt64},
	Memory:        math.MaxInt64,
}

// density measures what a sandbox takes of the process's memory.
func density(b *bench) {
	for _, l := range languages {
		in(l.name, func() { parkedBeside(b, l) })
	}
	for _, l := range []struct{ name, dir string }{{"std Go", "go"}, {"C", "c"}} {
		in(l.name, func() { fillGiB(b, l.name, l.dir) })
	}
}

// parkedBeside compares sandboxes that had a turn and wait for the next with
// instances of wazero's that had none.
func parkedBeside(b *bench, l language) {
	wasmBytes := must(l.wasm())
	input := turnInput(`[["look",{}],["call",{"op":2,"request":{}}]]`)
	c := must(concurrent(b.ctx, wasmBytes, input, parkedMany))
	fresh := must(freshEach(b.ctx, wasmBytes))
	if c.idle < parkedMany {
		b.report.fact(fmt.Sprintf("%s, sandboxes parked of %d; the others grew", l.name, parkedMany), float64(c.idle), count)
		return
	}
	target := none()
	if l.name == "std Go" {
		target = share(20)
	}
	b.report.compare(l.name+", parked sandbox", c.parked/parkedMany, bytesOf, "fresh wazero instance", fresh, target)
}

// fillGiB fills a GiB with sandboxes of one module, and measures turns that all
// wait for the host.
func fillGiB(b *bench, name, dir string) {
	wasmBytes := must(ownGuest("agent", dir))
	waiting := must(concurrent(b.ctx, wasmBytes, []byte{'B'}, blockedMany))
	fresh := must(freshEach(b.ctx, wasmBytes))
	b.report.compare(fmt.Sprintf("%s, turn that waits in an op, of %d", name, blockedMany), waiting.blocked/blockedMany, bytesOf,
		"parked sandbox", waiting.parked/blockedMany, none())
	n := min(int(gib/(waiting.parked/blockedMany)), fillMost)
	full := must(concurrent(b.ctx, wasmBytes, []byte{'B'}, n))
	b.report.fact(fmt.Sprintf("%s, %d parked sandboxes take", name, full.idle), full.parked, bytesOf)
	b.report.compare(name+", parked sandboxes in a GiB", gib*float64(full.idle)/full.parked, count, "fresh wazero instances", gib/fresh, none())
}

// memoryGrowth is by how much the process grew for turns that waited at once, and
// for their sandboxes that were idle afterwards.
type memoryGrowth struct {
	blocked, parked float64
	idle            int
}

// concurrent runs so many turns at once, all of which wait in an op, and lets them go.
// What is needed once for a module does not count.
func concurrent(ctx context.Context, wasmBytes, input []byte, n int) (memoryGrowth, error) {
	engine, err := newEngine(ctx, boundless)
	if err != nil {
		return memoryGrowth{}, err
	}
	defer engine.Close(ctx)
	module, err := engine.Load(ctx, wasm.Source{Name: "guest", Wasm: wasmBytes, Trusted: true})
	if err != nil {
		return memoryGrowth{}, err
	}
	if _, err := turnOf(ctx, module, input, answers([]byte("{}")), turn.Limits{}); err != nil {
		return memoryGrowth{}, err
	}
	before, err := resident()
	if err != nil {
		return memoryGrowth{}, err
	}
	c := &concurrentTurns{release: make(chan struct{})}
	c.arrive(ctx, module, input, n)
	during, err := resident()
	close(c.release)
	c.left.Wait()
	if err := firstOf(c.failed, err); err != nil {
		return memoryGrowth{}, fmt.Errorf("%d turns at once: %w", n, err)
	}
	after, err := resident()
	return memoryGrowth{during - before, after - before, engine.Pool().Idle}, err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// concurrentTurns is a number of turns that wait together.
type concurrentTurns struct {
	release chan struct{}
	left    sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// arrive starts turns and returns when each waits in its op, or has failed.
func (c *concurrentTurns) arrive(ctx context.Context, m *wasm.Module, input []byte, n int) {
	var here sync.WaitGroup
	here.Add(n)
	for range n {
		c.left.Go(func() {
			arrived := sync.OnceFunc(here.Done)
			defer arrived()
			if _, err := turnOf(ctx, m, input, held(c.release, arrived), turn.Limits{}); err != nil {
				c.mu.Lock()
				c.failed = firstOf(c.failed, err)
				c.mu.Unlock()
			}
		})
	}
	here.Wait()
}

// freshEach returns what an instance of wazero's takes that was initialised and
// had no turn.
func freshEach(ctx context.Context, wasmBytes []byte) (float64, error) {
	p, err := newPlain(ctx, wasmBytes, asItComes)
	if err != nil {
		return 0, err
	}
	defer p.close(ctx)
	var list []api.Module
	before := 0.0
	for n := range 1 + freshMany {
		if n == 1 { // the first brings what is needed once
			if before, err = resident(); err != nil {
				return 0, err
			}
		}
		guest, err := p.start(ctx)
		if err != nil {
			return 0, err
		}
		list = append(list, guest)
	}
	after, err := resident()
	runtime.KeepAlive(list)
	return (after - before) / freshMany, err
}
