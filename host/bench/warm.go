package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"skep/host/internal/turn/wasm"
)

// startsInRound is how often a process is started in a round.
const startsInRound = 5

// warmStarts compares processes that open a compiled std-Go module from a cache
// directory and run a first turn: in the sandbox, and on wazero with its own
// cache.
func warmStarts(b *bench) {
	dir := must(os.MkdirTemp("", "skep-bench"))
	defer os.RemoveAll(dir)
	kinds := []string{"load", "turn", "wazero-load", "wazero-turn"}
	took := map[string][]float64{}
	for n := range 1 + startsInRound*b.rounds {
		for _, kind := range kinds {
			m := must(measureInChild(b.ctx, warmStart{kind, dir, time.Now()}, "warm"))
			if n > 0 { // the first fills the caches
				took[kind] = append(took[kind], m.Seconds)
			}
		}
	}
	b.report.add(newRow("std Go, load from the file cache", median(took["load"]), seconds,
		"wazero with a file cache", median(took["wazero-load"]), atMost(1)))
	b.report.compare("std Go, process start to the end of the first turn", median(took["turn"]), seconds,
		"wazero with a file cache", median(took["wazero-turn"]), none())
}

// warmStart is what one child measures, with its cache directory and the time at
// which its parent started it.
type warmStart struct {
	Kind, Dir string
	Started   time.Time
}

// warmJob measures the start of its one request.
func warmJob(ctx context.Context, p pipe, _ []string) error {
	var start warmStart
	if err := p.from.Decode(&start); err != nil {
		return err
	}
	m, err := start.measure(ctx)
	if err != nil {
		return err
	}
	return p.sendReply(m)
}

// measure takes the time from New to the loaded module, or from the start of the
// process to the end of a turn.
func (w warmStart) measure(ctx context.Context) (m measured, err error) {
	wasmBytes, err := readGuest("bin/plugins/script.wasm")
	if err != nil {
		return m, err
	}
	input := turnInput("hello")
	start := time.Now()
	first, loaded := warmSandbox, start
	if strings.HasPrefix(w.Kind, "wazero-") {
		first = warmWazero
	}
	if err := first(ctx, w.Dir, wasmBytes, input, func() { loaded = time.Now() }); err != nil {
		return m, err
	}
	m.Seconds = loaded.Sub(start).Seconds()
	if strings.HasSuffix(w.Kind, "turn") {
		m.Seconds = time.Since(w.Started).Seconds()
	}
	return m, nil
}

func warmSandbox(ctx context.Context, _ string, wasmBytes, input []byte, loaded func()) error {
	engine, err := newEngine(ctx, wasm.Options{})
	if err != nil {
		return err
	}
	module, err := engine.Load(ctx, wasm.Source{Name: "script", Wasm: wasmBytes, Trusted: true})
	if err != nil {
		return err
	}
	loaded()
	return metered(ctx, module, input)
}

func warmWazero(ctx context.Context, dir string, wasmBytes, input []byte, loaded func()) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	p, err := newPlain(ctx, wasmBytes, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	if err != nil {
		return err
	}
	loaded()
	return p.turn(ctx, input)
}
