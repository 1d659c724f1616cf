package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skep/host/internal/guests"
	"skep/host/internal/sandbox"
)

// workInTurn is how often a long turn repeats its work: so often that what a turn
// costs besides it does not count.
const workInTurn = 100

// turns compares metered turns with the same guests on plain wazero.
func turns(b *bench) error {
	engine, err := newEngine(b.ctx, sandbox.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(b.ctx)
	for _, l := range languages {
		if err := jsonTurns(b, engine, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return scriptTurns(b, engine)
}

// jsonTurns measures turns that repeat some work with JSON, and a short one.
func jsonTurns(b *bench, engine *sandbox.Engine, l language) error {
	wasm, err := l.wasm()
	if err != nil {
		return err
	}
	module, err := engine.Load(b.ctx, sandbox.Source{Name: l.name, Wasm: wasm, Trusted: true})
	if err != nil {
		return err
	}
	bare, err := newPlain(b.ctx, wasm, asItComes)
	if err != nil {
		return err
	}
	defer bare.close(b.ctx)
	stoppable, err := newPlain(b.ctx, wasm, closing)
	if err != nil {
		return err
	}
	defer stoppable.close(b.ctx)
	for _, w := range []struct {
		name, body string
		target     *bound
	}{
		{"JSON turn, 100 requests of 1 KiB", requests(workInTurn), atMost(1.30)},
		{"JSON turn, 200 KiB of output", looks(workInTurn), atMost(1.30)},
		{"JSON turn, one request of 1 KiB", requests(1), none()},
	} {
		input := turnInput(w.body)
		cost, err := b.costs(repeated("metered", func() error { return metered(b.ctx, module, input) }),
			bare.warmed(b.ctx, input), stoppable.warmed(b.ctx, input))
		if err != nil {
			return err
		}
		b.report.compare(l.name+", "+w.name, cost[0], seconds, "plain wazero", cost[1], w.target)
		b.report.compare("the same", cost[0], seconds, "wazero, close on done", cost[2], none())
	}
	return nil
}

// looks makes a command list whose answers repeat what the turn's input says.
func looks(n int) string { return "[" + strings.Repeat(`["look",{}],`, n-1) + `["look",{}]]` }

// requests makes a command list that sends n requests.
func requests(n int) string {
	body := strings.Repeat("what is to be worked out ", 40)
	one := `["send_request",{"target":"math","subject":"s","body":"` + body + `"}]`
	return "[" + strings.Repeat(one+",", n-1) + one + "]"
}

// scriptTurns measures the script agent, in an instance of its own each turn.
func scriptTurns(b *bench, engine *sandbox.Engine) error {
	wasm, err := os.ReadFile(filepath.Join(guests.Root(), "bin", "plugins", "script.wasm"))
	if err != nil {
		return fmt.Errorf("run make guests first: %w", err)
	}
	module, err := engine.Load(b.ctx, sandbox.Source{Name: "script", Wasm: wasm, Trusted: true})
	if err != nil {
		return err
	}
	bare, err := newPlain(b.ctx, wasm, asItComes)
	if err != nil {
		return err
	}
	defer bare.close(b.ctx)
	for _, in := range []struct{ name, body string }{
		{"trivial turn", "hello"},
		{"turn of 50 mail calls", script(50)},
	} {
		input := turnInput(in.body)
		cost, err := b.costs(
			repeated("metered "+in.name, func() error { return metered(b.ctx, module, input) }),
			repeated("plain "+in.name, func() error { return bare.turn(b.ctx, input) }),
		)
		if err != nil {
			return err
		}
		b.report.compare("std Go, "+in.name+", clean", cost[0], seconds, "plain wazero, an instance a turn", cost[1], none())
	}
	return nil
}

// newEngine opens an engine on the compile cache that make guests fills.
func newEngine(ctx context.Context, o sandbox.Options) (*sandbox.Engine, error) {
	o.CacheDir = cacheDir()
	return sandbox.New(ctx, o)
}

// script makes a script of n calls.
func script(n int) string {
	body := "["
	for i := range n {
		if i > 0 {
			body += ","
		}
		body += `["send_request",{"target":"math","subject":"s","body":"a message of some length for the other agent"}]`
	}
	return body + "]"
}

func metered(ctx context.Context, m *sandbox.Module, input []byte) error {
	_, err := turnOf(ctx, m, input, answers(cannedAnswer()), sandbox.Limits{})
	return err
}

// turnOf runs one turn in the sandbox, and returns its output.
func turnOf(ctx context.Context, m *sandbox.Module, input []byte, ops sandbox.Ops, limits sandbox.Limits) ([]byte, error) {
	res := m.Turn(ctx, sandbox.Turn{Input: input, Clock: &clock{time.Now()}, Ops: ops, CPU: free{}, Limits: limits})
	if res.Exit != nil {
		return nil, res.Exit
	}
	return res.Output, nil
}

// free is a processor nobody else wants.
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
