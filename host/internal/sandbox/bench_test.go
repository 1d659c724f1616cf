package sandbox

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/guests"
)

// answering is the cheapest port: no lock, no copy.
func answering(body []byte) Ops {
	return Instant(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return body, nil })
}

// live starts an instance of the script agent that can be called again and
// again, metered or as its author wrote it.
func live(b *testing.B, metered bool) *run {
	m := goGuest(b, "plugins/script")
	r := newRun(context.Background(), m, Turn{Input: input(b, "hello"), Clock: newClock(),
		Ops:    answering([]byte(`{"text":"SUCCESS"}`)),
		Limits: Limits{Fuel: math.MaxInt64, CPU: time.Hour, HostCalls: math.MaxInt64, HostBytes: math.MaxInt64}})
	if exit := r.start(); exit != nil {
		b.Fatal(exit)
	}
	b.Cleanup(func() { r.drop(nil) })
	r.begin()
	if metered {
		return r
	}
	plain := newPlain(b, m, guests.Bytes(b, "plugins/script"))
	p := plain.start(b, r.turn, r)
	b.Cleanup(func() { _ = p.guest.Close(context.Background()) })
	return p
}

func benchmarkJSON(b *testing.B, metered bool) {
	r := live(b, metered)
	for b.Loop() {
		r.output = r.output[:0]
		if status, exit := r.callStatus(abi.ExportTurn, uint64(len(r.turn.Input))); exit != nil || status != abi.StatusOK {
			b.Fatal(status, exit)
		}
	}
}

// The same turn (decode its input, call one op, encode) on a live instance.
func BenchmarkJSONTurnMetered(b *testing.B) { benchmarkJSON(b, true) }
func BenchmarkJSONTurnPlain(b *testing.B)   { benchmarkJSON(b, false) }

// BenchmarkOp is one op from guest to host and back, 64 bytes each way, in a
// guest that does nothing else.
func BenchmarkOp(b *testing.B) {
	builder := newBuilder()
	call := builder.importFunc("skep_v1", "call", "iiiii", "I")
	wasm := builder.agent("", loop(join(i32c(4), i32c(0), i32c(64), i32c(64), i32c(64), callf(call), drop,
		get(0), i32c(1), op(0x6b), op(0x22, 0), brIf(0))), ok)
	m := load(b, wasm)
	r := newRun(context.Background(), m, Turn{Clock: newClock(), Ops: answering(make([]byte, 64)),
		Limits: Limits{Fuel: math.MaxInt64, CPU: time.Hour, HostCalls: math.MaxInt64, HostBytes: math.MaxInt64}})
	if exit := r.start(); exit != nil {
		b.Fatal(exit)
	}
	defer r.drop(nil)
	r.begin()
	b.ResetTimer()
	for n := b.N; n > 0; {
		step := min(n, 1<<20)
		if _, exit := r.callStatus(abi.ExportTurn, uint64(step)); exit != nil {
			b.Fatal(exit)
		}
		n -= step
	}
}

// BenchmarkHandOff is what an op is compared with: two goroutines and two
// channels.
func BenchmarkHandOff(b *testing.B) {
	to, from := make(chan int), make(chan int)
	go func() {
		for v := range to {
			from <- v
		}
		close(from)
	}()
	for b.Loop() {
		to <- 1
		<-from
	}
	close(to)
	<-from
}

// BenchmarkKill is how late a guest ends after its deadline, in the worst of a
// hundred: a loop, a deep recursion, a bulk fill; and a bare timer beside them.
func BenchmarkKill(b *testing.B) {
	deep := newBuilder()
	f := deep.fn("", "i", "i", "", get(0), op(0x45, 0x04, 0x7f), forever(), i32c(0), op(0x05),
		get(0), i32c(1), op(0x6b), callf(0), op(0x0b))
	fill := newBuilder()
	fill.mem(512)
	shapes := map[string][]byte{
		"loop":  newBuilder().agent("", forever(), ok),
		"deep":  deep.agent("", i32c(60_000), callf(f)),
		"fill":  fill.agent("", loop(join(i32c(0), i32c(1), i32c(32<<20), op(0xfc, 11, 0), br(0))), ok),
		"timer": nil,
	}
	for name, wasm := range shapes {
		b.Run(name, func(b *testing.B) {
			var m *Module
			if wasm != nil {
				m = load(b, wasm)
			}
			var late []time.Duration
			for b.Loop() {
				const wall = 5 * time.Millisecond
				ctx, cancel := context.WithTimeout(context.Background(), wall)
				start := time.Now()
				if m == nil {
					<-ctx.Done()
				} else if r := m.Turn(ctx, Turn{Clock: newClock(), Limits: Limits{Fuel: math.MaxInt64, CPU: time.Hour}}); r.Exit == nil || r.Exit.Kind != ExitDeadline {
					b.Fatal(r.Exit)
				}
				late = append(late, time.Since(start)-wall)
				cancel()
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-late-us")
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-late-us")
		})
	}
}
