//go:build linux

package conform_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/conform"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
	"skep/spec/conformance"
)

// act is one way for a turn to go.
type act struct {
	name string
	// vector is the turn of a conformance guest; without one it is rude's.
	vector string
	fuel   uint64 // limit, 0 for the default
	cancel bool   // the context ends while the first op is answered
	want   turn.ExitKind
}

// mix is what the turns are made of, over and over.
var mix = []act{
	{name: "ok", vector: "echo"},
	{name: "ok", vector: "state: the last one counts"},
	{name: "failed", vector: "fail", want: turn.ExitFailed},
	{name: "ok", vector: "short: read by handle"},
	{name: "killed by fuel", vector: "echo", fuel: 1000, want: turn.ExitFuel},
	{name: "ok", vector: "a fresh instance"},
	{name: "aborted", vector: "abort", want: turn.ExitAbort},
	{name: "ok", vector: "submit: answers in order"},
	{name: "cancelled", vector: "call: an answer as it is", cancel: true, want: turn.ExitCancelled},
	{name: "ok", vector: "nothing to do"},
	{name: "killed by its output", vector: "too much output", want: turn.ExitOutput},
	{name: "ok", vector: "the turn's clock"},
	{name: "trapped", want: turn.ExitTrap},
}

// soaker plays turns of all guests.
type soaker struct {
	engine  *wasm.Engine
	guests  []*wasm.Module
	rude    *wasm.Module
	vectors map[string]conformance.Turn
}

func newSoaker(t *testing.T) *soaker {
	t.Helper()
	e, err := wasm.New(t.Context(), wasm.Options{CacheDir: guests.CacheDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := &soaker{engine: e, vectors: map[string]conformance.Turn{}}
	load := func(name string, wasmBytes []byte) *wasm.Module {
		m, err := e.Load(t.Context(), wasm.Source{Name: name, Wasm: wasmBytes})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, name := range []string{"assemblyscript", "c", "rust"} {
		wasmBytes, err := os.ReadFile(filepath.Join(guests.Root(), "spec", "conformance", "guests", name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		s.guests = append(s.guests, load(name, wasmBytes))
	}
	s.guests = append(s.guests, load("go", guests.Bytes(t, "testguests/conform")))
	s.rude = load("rude", guests.Bytes(t, "testguests/rude"))
	vectors, err := conformance.Turns()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		s.vectors[v.Name] = v
	}
	return s
}

// play runs turn n, and checks how it ended and what it wrote.
func (s *soaker) play(ctx context.Context, n int) error {
	guest, a := s.guests[n%len(s.guests)], mix[n/len(s.guests)%len(mix)]
	if a.fuel == 0 && !a.cancel && a.vector != "" {
		v := s.vectors[a.vector]
		if problems := conform.Compare(v.Want, conform.Run(ctx, guest, v)); len(problems) > 0 {
			return fmt.Errorf("turn %d, %s: %s", n, a.name, strings.Join(problems, "; "))
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := turn.Turn{
		Input: s.vectors[a.vector].Input, Clock: &stillClock{}, Limits: turn.Limits{Fuel: a.fuel},
		Ops: turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
			if a.cancel {
				cancel()
			}
			return []byte("{}"), nil
		}),
	}
	if a.vector == "" {
		guest, t.Input = s.rude, []byte("panic")
	}
	if r := guest.Turn(ctx, t); r.Exit == nil || r.Exit.Kind != a.want {
		return fmt.Errorf("turn %d, %s: ended as %v", n, a.name, r.Exit)
	}
	return nil
}

// stillClock is a turn's clock that stands still.
type stillClock struct{ now time.Time }

func (c *stillClock) Now() time.Time       { return c.now }
func (c *stillClock) Advance(to time.Time) { c.now = to }
func (c *stillClock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

// run plays the turns from one number to another, from four goroutines.
func (s *soaker) run(t *testing.T, from, to int) {
	t.Helper()
	const workers = 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := from + w; n < to && !t.Failed(); n += workers {
				// Workers must not keep to one guest each.
				if err := s.play(t.Context(), n+n/workers); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// held is what this process holds of the system.
type held struct{ resident, goroutines, files, mappings int }

func (h held) String() string {
	return fmt.Sprintf("%d MiB resident, %d goroutines, %d files, %d mappings", h.resident>>20, h.goroutines, h.files, h.mappings)
}

func hold(t *testing.T) (h held) {
	t.Helper()
	runtime.GC() // twice, for what finalizers let go of
	debug.FreeOSMemory()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(bytes.Fields(statm)[1]), &h.resident); err != nil {
		t.Fatal(err)
	}
	h.resident *= os.Getpagesize()
	h.goroutines, h.files, h.mappings = runtime.NumGoroutine(), len(files), bytes.Count(maps, []byte("\n"))
	return h
}

// TestSoak plays turns that end in every way, and holds no more of the system
// afterwards than after the first ones. With SKEP_SOAK there are a million.
func TestSoak(t *testing.T) {
	warm, turns := 1000, 2000
	if os.Getenv("SKEP_SOAK") != "" {
		warm, turns = 20_000, 1_000_000
	}
	before := hold(t)
	s := newSoaker(t)
	s.run(t, 0, warm)
	first := hold(t)
	start := time.Now()
	s.run(t, warm, turns)
	took := time.Since(start)
	last := hold(t)
	t.Logf("%d turns after the first %d in %v, %v each; pool %+v", turns-warm, warm, took.Round(time.Millisecond),
		(took / time.Duration(turns-warm)).Round(100*time.Nanosecond), s.engine.Pool())
	if err := s.engine.Close(context.Background()); err != nil {
		t.Error(err)
	}
	end := hold(t)
	t.Logf("at first       %v\nafter %7d  %v\nafter %7d  %v\nclosed         %v", before, warm, first, turns, last, end)

	// A part of the turns gives its instance up: what each of these left behind
	// would be counted in hundreds.
	const marginMappings, marginResident = 64, 32 << 20
	if last.goroutines > first.goroutines || last.files > first.files {
		t.Errorf("goroutines or files were left behind: %v, then %v", first, last)
	}
	if last.mappings > first.mappings+marginMappings || end.mappings > before.mappings+marginMappings {
		t.Errorf("mappings were left behind: %v, then %v; closed %v", first, last, end)
	}
	if last.resident > first.resident+first.resident/4+marginResident {
		t.Errorf("memory grows: %v, then %v", first, last)
	}
	if end.files > before.files || end.goroutines > before.goroutines {
		t.Errorf("a closed sandbox holds on: %v, then %v", before, end)
	}
}
