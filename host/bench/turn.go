package main

import (
	"context"
	"strings"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm"
)

// workInTurn is how often a long turn repeats its work: so often that what a turn
// costs besides it does not count.
const workInTurn = 100

// turns compares metered turns with the same guests on plain wazero.
func turns(b *bench) {
	engine := must(newEngine(b.ctx, wasm.Options{}))
	defer engine.Close(b.ctx)
	for _, l := range languages {
		in(l.name, func() { jsonTurns(b, engine, l) })
	}
}

// jsonTurns measures turns that repeat some work with JSON.
func jsonTurns(b *bench, engine *wasm.Engine, l language) {
	wasmBytes := must(l.wasm())
	module := must(engine.Load(b.ctx, wasm.Source{Name: l.name, Wasm: wasmBytes, Trusted: true}))
	bare := must(newPlain(b.ctx, wasmBytes, asItComes))
	defer bare.close(b.ctx)
	stoppable := must(newPlain(b.ctx, wasmBytes, closing))
	defer stoppable.close(b.ctx)
	for _, w := range []struct{ name, body string }{
		{"JSON turn, 100 requests of 1 KiB", requests(workInTurn)},
		{"JSON turn, 200 KiB of output", looks(workInTurn)},
	} {
		input := turnInput(w.body)
		cost := must(b.costs(repeated("metered", func() error { return metered(b.ctx, module, input) }),
			bare.warmed(b.ctx, input), stoppable.warmed(b.ctx, input)))
		b.report.compare(l.name+", "+w.name, cost[0], seconds, "plain wazero", cost[1], atMost(1.20))
		b.report.compare("the same", cost[0], seconds, "wazero, close on done", cost[2], none())
	}
}

// looks makes a command list whose answers repeat what the turn's input says.
func looks(n int) string { return "[" + strings.Repeat(`["look",{}],`, n-1) + `["look",{}]]` }

// requests makes a command list that sends n requests.
func requests(n int) string {
	body := strings.Repeat("what is to be worked out ", 40)
	one := `["send_request",{"target":"math","subject":"s","body":"` + body + `"}]`
	return "[" + strings.Repeat(one+",", n-1) + one + "]"
}

// newEngine opens an engine on the compile cache that make guests fills.
func newEngine(ctx context.Context, o wasm.Options) (*wasm.Engine, error) {
	o.CacheDir = cacheDir()
	return wasm.New(ctx, o)
}

func metered(ctx context.Context, m *wasm.Module, input []byte) error {
	_, err := turnOf(ctx, m, input, answers(cannedAnswer()), turn.Limits{})
	return err
}

// turnOf runs one turn in the sandbox, and returns its output.
func turnOf(ctx context.Context, m *wasm.Module, input []byte, ops turn.Ops, limits turn.Limits) ([]byte, error) {
	res := m.Turn(ctx, turn.Turn{Input: input, Clock: &clock{time.Now()}, Ops: ops, CPU: free{}, Limits: limits})
	if res.Exit != nil {
		return nil, res.Exit
	}
	return res.Output, nil
}

// free is an uncontended processor.
type free struct{}

func (free) Acquire(context.Context) error { return nil }
func (free) Release()                      {}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time       { return c.now }
func (c *clock) Advance(to time.Time) { c.now = to }
func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}
