package process_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/process"
)

func open(t *testing.T, src process.Source) (*process.Program, error) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if src.Program == nil {
		src.Program = program
	}
	p, err := process.Open(t.Context(), process.Options{Command: []string{"/proc/self/exe", process.Command}}, src)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

func newActor(t *testing.T) *process.Program {
	t.Helper()
	p, err := open(t, process.Source{Name: "actor", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask runs one turn of an actor and returns its note.
func ask(t *testing.T, ctx context.Context, p *process.Program, do, with string) (string, *turn.Exit) {
	t.Helper()
	return askOf(t, ctx, p, "default", do, with)
}

func askOf(t *testing.T, ctx context.Context, p *process.Program, tenant, do, with string) (string, *turn.Exit) {
	t.Helper()
	return runAsk(t, ctx, p, turn.Turn{Tenant: tenant, Limits: turn.Limits{Memory: 256 << 20}}, do, with)
}

// askWithin runs one turn with a memory limit in bytes.
func askWithin(t *testing.T, p *process.Program, memory int64, do, with string) (string, *turn.Exit) {
	t.Helper()
	return runAsk(t, t.Context(), p, turn.Turn{Tenant: "default", Limits: turn.Limits{Memory: memory}}, do, with)
}

func runAsk(t *testing.T, ctx context.Context, p *process.Program, about turn.Turn, do, with string) (string, *turn.Exit) {
	t.Helper()
	about.Input, _ = json.Marshal(map[string]string{"do": do, "with": with})
	about.Clock, about.Ops = &clock{time.Unix(1, 0)}, turn.OpsFunc(
		func(_ context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
			if len(req) == 0 {
				return nil, abi.Errorf(abi.CodeNotFound, op, "key", "no such key")
			}
			return append([]byte("answer to "), req...), nil
		})
	res := p.Turn(ctx, about)
	if res.Exit != nil {
		return "", res.Exit
	}
	var out abi.TurnResult
	if err := json.Unmarshal(res.Output, &out); err != nil || len(out.Notes) != 1 {
		t.Fatalf("%s: %v", res.Output, err)
	}
	return out.Notes[0], nil
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time       { return c.now }
func (c *clock) Advance(to time.Time) { c.now = to }
func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

func TestTurnCallsHost(t *testing.T) {
	p := newActor(t)
	if p.Descriptor().Name != "actor" {
		t.Errorf("described as %q", p.Descriptor().Name)
	}
	for with, want := range map[string]string{
		"tea": "0 answer to tea",
		"":    `3 {"code":"NOT_FOUND","op":"kv.get","reason":"key","message":"no such key"}`,
	} {
		if got, exit := ask(t, t.Context(), p, "op", with); got != want || exit != nil {
			t.Errorf("op %q: got %q (%v), want %q", with, got, exit, want)
		}
	}
}
