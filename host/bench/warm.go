package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"

	"skep/host/internal/guests"
	"skep/host/internal/sandbox"
)

// startsInRound is how often a process is started in a round.
const startsInRound = 5

// warmStarts compares processes that open a compiled std-Go module from a cache
// directory and run a first turn: in the sandbox, and on wazero with its own
// cache.
func warmStarts(b *bench) error {
	dir, err := os.MkdirTemp("", "skep-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kinds := []string{"load", "turn", "wazero-load", "wazero-turn"}
	took := map[string][]float64{}
	for n := range 1 + startsInRound*b.rounds {
		for _, kind := range kinds {
			m, err := inChild(b.ctx, nil, "warm", kind, dir, strconv.FormatInt(time.Now().UnixNano(), 10))
			if err != nil {
				return err
			}
			if n > 0 { // the first fills the caches
				took[kind] = append(took[kind], m.Seconds)
			}
		}
	}
	b.report.add(newRow("std Go, load from the file cache", median(took["load"]), seconds,
		"wazero with a file cache", median(took["wazero-load"]), below(40*time.Millisecond)))
	b.report.compare("std Go, process start to the end of the first turn", median(took["turn"]), seconds,
		"wazero with a file cache", median(took["wazero-turn"]), none())
	return nil
}

// warmHere measures one start, in the other process: from New to the loaded
// module, or from when the process was asked for to the end of a turn.
func warmHere(ctx context.Context, args []string) (m measured, err error) {
	if len(args) != 3 {
		return m, fmt.Errorf("usage: KIND DIRECTORY NANOSECONDS")
	}
	asked, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return m, err
	}
	wasm, err := os.ReadFile(filepath.Join(guests.Root(), "bin", "plugins", "script.wasm"))
	if err != nil {
		return m, err
	}
	input := turnInput("hello")
	start := time.Now()
	first, loaded := warmSandbox, start
	if args[0] == "wazero-load" || args[0] == "wazero-turn" {
		first = warmWazero
	}
	if err := first(ctx, args[1], wasm, input, func() { loaded = time.Now() }); err != nil {
		return m, err
	}
	m.Seconds = loaded.Sub(start).Seconds()
	if args[0] == "turn" || args[0] == "wazero-turn" {
		m.Seconds = time.Since(time.Unix(0, asked)).Seconds()
	}
	return m, nil
}

func warmSandbox(ctx context.Context, _ string, wasm, input []byte, loaded func()) error {
	engine, err := newEngine(ctx, sandbox.Options{})
	if err != nil {
		return err
	}
	module, err := engine.Load(ctx, sandbox.Source{Name: "script", Wasm: wasm, Trusted: true})
	if err != nil {
		return err
	}
	loaded()
	return metered(ctx, module, input)
}

func warmWazero(ctx context.Context, dir string, wasm, input []byte, loaded func()) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	p, err := newPlain(ctx, wasm, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	if err != nil {
		return err
	}
	loaded()
	return p.turn(ctx, input)
}
