package main

import (
	"context"
	"math"
	"strconv"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// hostOps compares what a guest's op costs with handing a value
// to a goroutine and with a subprocess's call through the broker.
func hostOps(b *bench) {
	engine := must(newEngine(b.ctx, wasm.Options{}))
	defer engine.Close(b.ctx)
	process := must(startBarePlugin(b.ctx))
	defer process.close()
	modules := map[string]*wasm.Module{}
	for name, dir := range map[string]string{"std Go": "go", "C": "c"} {
		wasmBytes := must(ownGuest("agent", dir))
		modules[name] = must(engine.Load(b.ctx, wasm.Source{Name: name, Wasm: wasmBytes, Trusted: true}))
	}
	opCosts(b, modules, process)
}

// Ops in one turn, so many that the turn does not count.
const (
	opsInTurn  = 20_000
	callsInRPC = 500
)

func opCosts(b *bench, modules map[string]*wasm.Module, process *barePlugin) {
	hand := newHandOff()
	defer hand.close()
	through := func(input []byte) error { _, err := process.turn(b.ctx, input); return err }
	subjects := []subject{hand.subject(), many("broker", 'S', callsInRPC, through), many("broker", 'O', callsInRPC, through)}
	names := []string{"std Go", "C"}
	for _, name := range names {
		subjects = append(subjects, asking(b.ctx, modules[name], 'S', smallQuestion), asking(b.ctx, modules[name], 'O', documentSize))
	}
	cost := must(b.costs(subjects...))
	for i, name := range names {
		small, large := cost[3+2*i], cost[4+2*i]
		b.report.compare(name+", one op, 64 bytes each way", small, seconds, "a goroutine hand-off and back", cost[0], atMost(1))
		b.report.compare("the same", small, seconds, "go-plugin, GRPCBroker", cost[1], none())
		b.report.compare(name+", one op, 1 KiB each way", large, seconds, "a goroutine hand-off and back", cost[0], atMost(1))
		b.report.compare("the same", large, seconds, "go-plugin, GRPCBroker", cost[2], share(100))
	}
}

// smallQuestion is what a small op sends and gets, in bytes.
const smallQuestion = 64

// asking is a subject that calls the host from a guest.
func asking(ctx context.Context, m *wasm.Module, c byte, size int) subject {
	ops, limits := answers(make([]byte, size)), turn.Limits{HostCalls: math.MaxInt64, HostBytes: math.MaxInt64}
	return many("op", c, opsInTurn, func(input []byte) error {
		_, err := turnOf(ctx, m, input, ops, limits)
		return err
	})
}

// many is a subject of which one run does n operations.
func many(name string, c byte, n int, turn func(input []byte) error) subject {
	input := command(c, []byte(strconv.Itoa(n)))
	return subject{name, func(span time.Duration) (int, time.Duration, error) {
		runs, took, err := repeat(span, func() error { return turn(input) })
		return runs * n, took, err
	}}
}

// handOff passes a value to another goroutine and gets one back.
type handOff struct{ to, from chan int }

func newHandOff() *handOff {
	h := &handOff{make(chan int), make(chan int)}
	go func() {
		defer close(h.from)
		for v := range h.to {
			h.from <- v
		}
	}()
	return h
}

// close waits for the goroutine.
func (h *handOff) close() {
	close(h.to)
	<-h.from
}

func (h *handOff) subject() subject {
	return subject{"hand-off", func(span time.Duration) (int, time.Duration, error) {
		const n = 10_000
		runs, took, err := repeat(span, func() error {
			for range n {
				h.to <- 1
				<-h.from
			}
			return nil
		})
		return runs * n, took, err
	}}
}
