package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/sandbox"
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
var boundless = sandbox.Options{
	IdlePerModule: sandbox.IdleLimits{Count: math.MaxInt32, Bytes: math.MaxInt64},
	IdleTotal:     sandbox.IdleLimits{Count: math.MaxInt32, Bytes: math.MaxInt64},
	Memory:        math.MaxInt64,
}

// density measures what a sandbox takes of the process's memory.
func density(b *bench) error {
	for _, l := range languages {
		if err := parkedBeside(b, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	for _, l := range []struct{ name, dir string }{{"std Go", "go"}, {"C", "c"}} {
		if err := fillGiB(b, l.name, l.dir); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// parkedBeside compares sandboxes that had a turn and wait for the next with
// instances of wazero's that had none.
func parkedBeside(b *bench, l language) error {
	wasm, err := l.wasm()
	if err != nil {
		return err
	}
	input := turnInput(`[["look",{}],["call",{"op":2,"request":{}}]]`)
	c, err := crowd(b.ctx, wasm, input, parkedMany)
	if err != nil {
		return err
	}
	fresh, err := freshEach(b.ctx, wasm)
	if err != nil {
		return err
	}
	if c.idle < parkedMany {
		b.report.fact(fmt.Sprintf("%s, sandboxes parked of %d; the others grew", l.name, parkedMany), float64(c.idle), count)
		return nil
	}
	target := none()
	if l.name == "std Go" {
		target = share(20)
	}
	b.report.compare(l.name+", parked sandbox", c.parked/parkedMany, bytesOf, "fresh wazero instance", fresh, target)
	return nil
}

// fillGiB fills a GiB with sandboxes of one module, and measures turns that all
// wait for the host.
func fillGiB(b *bench, name, dir string) error {
	wasm, err := ownGuest("agent", dir)
	if err != nil {
		return err
	}
	waiting, err := crowd(b.ctx, wasm, []byte{'B'}, blockedMany)
	if err != nil {
		return err
	}
	fresh, err := freshEach(b.ctx, wasm)
	if err != nil {
		return err
	}
	b.report.compare(fmt.Sprintf("%s, turn that waits in an op, of %d", name, blockedMany), waiting.blocked/blockedMany, bytesOf,
		"parked sandbox", waiting.parked/blockedMany, none())
	n := min(int(gib/(waiting.parked/blockedMany)), fillMost)
	full, err := crowd(b.ctx, wasm, []byte{'B'}, n)
	if err != nil {
		return err
	}
	b.report.fact(fmt.Sprintf("%s, %d parked sandboxes take", name, full.idle), full.parked, bytesOf)
	b.report.compare(name+", parked sandboxes in a GiB", gib*float64(full.idle)/full.parked, count, "fresh wazero instances", gib/fresh, none())
	return nil
}

// crowding is by how much the process grew for turns that waited at once, and
// for those of their sandboxes that were idle afterwards.
type crowding struct {
	blocked, parked float64
	idle            int
}

// crowd runs so many turns at once, all of which wait in an op, and lets them go.
// What is needed once for a module does not count.
func crowd(ctx context.Context, wasm, input []byte, n int) (crowding, error) {
	engine, err := newEngine(ctx, boundless)
	if err != nil {
		return crowding{}, err
	}
	defer engine.Close(ctx)
	module, err := engine.Load(ctx, sandbox.Source{Name: "guest", Wasm: wasm, Trusted: true})
	if err != nil {
		return crowding{}, err
	}
	if _, err := turnOf(ctx, module, input, answers([]byte("{}")), sandbox.Limits{}); err != nil {
		return crowding{}, err
	}
	before, err := resident()
	if err != nil {
		return crowding{}, err
	}
	c := &crowded{release: make(chan struct{})}
	c.arrive(ctx, module, input, n)
	during, err := resident()
	close(c.release)
	c.left.Wait()
	if err := firstOf(c.failed, err); err != nil {
		return crowding{}, fmt.Errorf("%d turns at once: %w", n, err)
	}
	after, err := resident()
	return crowding{during - before, after - before, engine.Pool().Idle}, err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// crowded is a number of turns that wait together.
type crowded struct {
	release chan struct{}
	left    sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// arrive starts turns and returns when each waits in its op, or has failed.
func (c *crowded) arrive(ctx context.Context, m *sandbox.Module, input []byte, n int) {
	var here sync.WaitGroup
	here.Add(n)
	for range n {
		c.left.Go(func() {
			arrived := sync.OnceFunc(here.Done)
			defer arrived()
			if _, err := turnOf(ctx, m, input, held(c.release, arrived), sandbox.Limits{}); err != nil {
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
func freshEach(ctx context.Context, wasm []byte) (float64, error) {
	p, err := newPlain(ctx, wasm, asItComes)
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
