package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// collections is how often the garbage is collected in a round.
const collections = 60

// pauses measures how long the host stands still for its own garbage collection,
// with guests that wait and with guests that loop, one a core.
func pauses(b *bench, looping *wasm.Module) {
	var idle, busy pauseList
	for range b.rounds {
		idle.collect()
		stop := loopEverywhere(b.ctx, looping)
		busy.collect()
		stop()
	}
	b.report.compare("GC pause, p50, a guest loops on every core", percentile(busy.pause, 50), seconds, "with idle guests", percentile(idle.pause, 50), none())
	b.report.compare("GC pause, p99, a guest loops on every core", percentile(busy.pause, 99), seconds, "with idle guests", percentile(idle.pause, 99), atMost(2).orBelow(300*time.Microsecond))
	b.report.compare("whole GC, p50, a guest loops on every core", percentile(busy.whole, 50), seconds, "with idle guests", percentile(idle.whole, 50), none())
}

// pauseList gathers what collections cost, in seconds.
type pauseList struct{ pause, whole []float64 }

// collect collects again and again. A pause is all the time in which the world
// stood still, or was being stopped, in one collection.
func (p *pauseList) collect() {
	var before, after debug.GCStats
	for range collections {
		debug.ReadGCStats(&before)
		start := time.Now()
		runtime.GC()
		p.whole = append(p.whole, time.Since(start).Seconds())
		debug.ReadGCStats(&after)
		p.pause = append(p.pause, (after.PauseTotal - before.PauseTotal).Seconds())
	}
}

// loopEverywhere runs an endless turn on every core until stop is called.
func loopEverywhere(ctx context.Context, m *wasm.Module) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() { m.Turn(ctx, turn.Turn{Clock: &clock{time.Now()}, Limits: endless}) })
	}
	time.Sleep(10 * time.Millisecond) // until they run
	return func() { cancel(); wg.Wait() }
}
