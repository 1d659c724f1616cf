package wasm

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/turn"
)

// plain is a module as its author wrote it, in the same runtime: what wazero
// itself does with it.
type plain struct {
	module   *Module
	compiled wazero.CompiledModule
}

func newPlain(b *testing.B, m *Module, wasm []byte) *plain {
	b.Helper()
	compiled, err := m.engine.runtime.CompileModule(context.Background(), wasm)
	if err != nil {
		b.Fatal(err)
	}
	return &plain{module: m, compiled: compiled}
}

// start makes an instance with wazero's own memory and initialises it.
func (p *plain) start(b *testing.B, t turn.Turn, meter *run) *run {
	b.Helper()
	r := newRun(context.Background(), p.module, t)
	r.slice, r.meter = meter.slice, meter.meter
	r.clock, r.starting, r.limits = t.Clock, false, t.Limits.WithDefaults()
	guest, err := p.module.engine.runtime.InstantiateModule(r.guestContext(), p.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		b.Fatal(err)
	}
	r.guest, r.memory = guest, guest.Memory()
	if exit := r.callVoid(abi.ExportInitialize, abi.ExportInitialize); exit != nil {
		b.Fatal(exit)
	}
	return r
}

// answering is the cheapest port: no lock, no copy.
func answering(body []byte) turn.Ops {
	return turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return body, nil })
}

// boundless lets one run make any number of calls.
var boundless = turn.Limits{Fuel: math.MaxInt64, Start: 500_000_000, CPU: time.Hour, HostCalls: math.MaxInt64, HostBytes: math.MaxInt64}

// BenchmarkCleanTurn is a whole turn of std-Go agents in a new
// instance: one that rehearses before its image is taken, and one that does not and
// grows in every turn.
func BenchmarkCleanTurn(b *testing.B) {
	for guest, body := range map[string]string{"testguests/keeper": "probe", "plugins/script": "hello"} {
		turn := turn.Turn{Input: input(b, body), Clock: newClock(), Ops: answering([]byte(`{"text":"SUCCESS"}`)), Limits: boundless}
		wasm := guests.Bytes(b, guest)
		for name, o := range map[string]Options{
			"pooled": {}, "pooled-cold": {}, "begun": {IdleTotal: IdleLimits{Count: -1}}, "pooled-copied": {CopyImages: true}, "fresh": {},
		} {
			o.CacheDir = guests.CacheDir(b)
			m := loadInto(b, engineWith(b, o), wasm)
			switch name {
			case "fresh":
				m.noImageReason = "the benchmark says so"
			case "pooled-cold":
				m.engine.pools.maxWarm = 0
			}
			b.Run(guest+"/"+name, func(b *testing.B) { benchmarkTurns(b, m, turn) })
			if name != "fresh" {
				continue
			}
			p := newPlain(b, m, wasm)
			meter := newRun(context.Background(), m, turn)
			if exit := meter.start(); exit != nil {
				b.Fatal(exit)
			}
			meter.beginTurn()
			b.Run(guest+"/wazero", func(b *testing.B) { benchmarkPlain(b, p, turn, meter) })
			b.Run(guest+"/live", func(b *testing.B) { benchmarkLive(b, meter) })
			meter.returnInstance(nil)
		}
	}
}

func benchmarkTurns(b *testing.B, m *Module, turn turn.Turn) {
	b.ReportAllocs()
	before := m.engine.Pool()
	for b.Loop() {
		if r := m.Turn(context.Background(), turn); r.Exit != nil {
			b.Fatal(r.Exit)
		}
	}
	b.ReportMetric(float64(m.engine.Pool().Reused-before.Reused)/float64(b.N), "reused/op")
}

func benchmarkPlain(b *testing.B, p *plain, turn turn.Turn, meter *run) {
	b.ReportAllocs()
	for b.Loop() {
		r := p.start(b, turn, meter)
		if status, exit := r.callStatus(abi.ExportTurn, uint64(len(turn.Input))); exit != nil || status != abi.StatusOK {
			b.Fatal(status, exit)
		}
		_ = r.guest.Close(context.Background())
	}
}

// benchmarkLive is the turn alone, in an instance that is never cleaned.
func benchmarkLive(b *testing.B, r *run) {
	for b.Loop() {
		r.output = r.output[:0]
		if status, exit := r.callStatus(abi.ExportTurn, uint64(len(r.turn.Input))); exit != nil || status != abi.StatusOK {
			b.Fatal(status, exit)
		}
	}
}

// BenchmarkReset is what it costs to make an instance as new: the call itself,
// and the call with the faults behind it, after some of its pages were written.
func BenchmarkReset(b *testing.B) {
	for _, pages := range []int{2, 16, 64} {
		for _, copies := range []bool{false, true} {
			m := loadInto(b, engineWith(b, Options{CopyImages: copies}), patched(pages))
			img := imageOf(b, m)
			i, err := m.newInstance(startLimits{Memory: 64 << 20, Stack: 1 << 20}, img)
			if err != nil {
				b.Fatal(err)
			}
			for _, dirty := range []int{0, 10, 50} {
				dirty = min(dirty, pages*page/osPage)
				for _, warm := range []bool{false, true} {
					b.Run(fmt.Sprintf("%dKiB/copied=%v/warm=%v/dirty=%d", pages*64, copies, warm, dirty), func(b *testing.B) {
						benchmarkReset(b, i, dirty, warm)
					})
				}
			}
			i.close()
		}
	}
	b.Run("4096KiB/memcpy", func(b *testing.B) {
		from, to := bytes.Repeat([]byte{1}, 4<<20), make([]byte, 4<<20)
		for b.Loop() {
			copy(to, from)
		}
	})
}

func benchmarkReset(b *testing.B, i *instance, dirty int, warm bool) {
	memory, _ := i.memory.Read(0, i.memory.Size())
	rnd := rand.New(rand.NewPCG(1, 2))
	at := make([]int, dirty)
	for n := range at {
		at[n] = rnd.IntN(len(memory))
	}
	var resets time.Duration
	for b.Loop() {
		for _, n := range at {
			memory[n]++
		}
		start := time.Now()
		if !i.restore(warm) {
			b.Fatal("not restored")
		}
		resets += time.Since(start)
	}
	b.ReportMetric(float64(resets.Nanoseconds())/float64(b.N), "reset-ns")
}
