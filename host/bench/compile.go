package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// realGuests are modules that people could run, all large enough for a figure
// per byte.
var realGuests = []string{
	"bin/plugins/script.wasm", "bin/plugins/calculator.wasm", "bin/testguests/conform.wasm",
	"bin/testguests/rude.wasm", "spec/conformance/guests/rust.wasm", "spec/conformance/guests/assemblyscript.wasm",
}

// cost is what loading one module took, per byte of it. Where it was stopped, it
// is what it had taken by then.
type cost struct {
	seconds, memory float64
	stopped         string
}

// compiles compares the hardest modules that are admitted with real ones, each
// loaded in a process of its own without a cache, and times refusals.
func compiles(b *bench) {
	realTime, realMemory := worst{}, worst{}
	for _, file := range realGuests {
		wasmBytes := must(readGuest(file))
		c, err := loadInChild(b.ctx, wasmBytes)
		check(named(file, err))
		realTime.see(filepath.Base(file), c.seconds)
		realMemory.see(filepath.Base(file), c.memory)
	}
	worstTime, worstMemory := worst{}, worst{}
	for _, s := range costliestModules() {
		name := fmt.Sprintf("%s, %d KiB", s.name, len(s.wasm)>>10)
		c, err := loadInChild(b.ctx, s.wasm)
		check(named(s.name, err))
		if c.stopped != "" {
			name += ", stopped (" + c.stopped + ")"
		}
		b.report.compare(name, c.seconds, secondsPerByte, realTime.name, realTime.value, none())
		b.report.compare("the same", c.memory, bytesPerByte, realMemory.name, realMemory.value, none())
		worstTime.see(s.name, c.seconds)
		worstMemory.see(s.name, c.memory)
	}
	b.report.compare("slowest admitted: "+worstTime.name, worstTime.value, secondsPerByte, "slowest real guest", realTime.value, atMost(2))
	b.report.compare("largest admitted: "+worstMemory.name, worstMemory.value, bytesPerByte, "largest real guest", realMemory.value, atMost(2))
	refusals(b)
}

// worst remembers the largest of some values.
type worst struct {
	name  string
	value float64
}

func (w *worst) see(name string, value float64) {
	if value > w.value {
		w.name, w.value = name, value
	}
}

// refusals times how long bombs take to be refused.
func refusals(b *bench) {
	engine := must(wasm.New(b.ctx, wasm.Options{}))
	defer engine.Close(b.ctx)
	for _, s := range refusedModules() {
		var took []float64
		for range 5 * b.rounds {
			start := time.Now()
			_, err := engine.Load(b.ctx, wasm.Source{Name: s.name, Wasm: s.wasm})
			took = append(took, time.Since(start).Seconds())
			var refused *turn.LoadError
			if !errors.As(err, &refused) {
				check(fmt.Errorf("%s is not refused: %v", s.name, err))
			}
		}
		slowest := percentile(took, 100)
		b.report.add(newRow("refused: "+s.name+", slowest of "+fmt.Sprint(len(took)), slowest, seconds, "", 0, below(10*time.Millisecond)))
	}
}
