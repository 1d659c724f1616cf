package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skep/abi"
	"skep/host/internal/guests"
	"skep/host/internal/sandbox"
)

// turns compares a clean turn of a std-Go guest, metered in the sandbox, with
// the same guest on plain wazero without any limit.
func turns(b *bench) error {
	wasm, err := os.ReadFile(filepath.Join(guests.Root(), "bin", "plugins", "script.wasm"))
	if err != nil {
		return fmt.Errorf("run make guests first: %w", err)
	}
	engine, err := sandbox.New(b.ctx, sandbox.Options{CacheDir: filepath.Join(guests.Root(), "bin", "cache")})
	if err != nil {
		return err
	}
	defer engine.Close(b.ctx)
	module, err := engine.Load(b.ctx, sandbox.Source{Name: "script", Wasm: wasm})
	if err != nil {
		return err
	}
	bare, err := newPlain(b.ctx, wasm)
	if err != nil {
		return err
	}
	defer bare.close(b.ctx)

	for _, in := range []struct{ name, body string }{
		{"trivial turn", "hello"},
		{"turn of 50 mail calls", script(50)},
	} {
		input := turnInput(in.body)
		rates, err := b.rates(
			subject{"metered " + in.name, func(span time.Duration) (int, time.Duration, error) {
				return repeat(span, func() error { return metered(b.ctx, module, input) })
			}},
			subject{"plain " + in.name, func(span time.Duration) (int, time.Duration, error) {
				return repeat(span, func() error { return bare.turn(b.ctx, input) })
			}},
		)
		if err != nil {
			return err
		}
		b.line("clean "+in.name+", metered", rates[0], "the time on plain wazero", rates[1]/rates[0], "at most 1.30x")
		b.line("clean "+in.name+", plain wazero", rates[1], "", 0, "")
	}
	return nil
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
	res := m.Turn(ctx, sandbox.Turn{Input: input, Clock: &clock{time.Now()}, Ops: canned{}, CPU: free{}})
	if res.Exit != nil {
		return res.Exit
	}
	return nil
}

// canned answers every op at once, as the plain peer does.
type canned struct{}

func (canned) Call(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return cannedAnswer(), nil }

func cannedAnswer() []byte { return []byte(`{"id":"1","text":"SUCCESS: message sent"}`) }

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
