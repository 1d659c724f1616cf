package subprocess_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/sandbox"
	"skep/host/internal/subprocess"
)

func open(t *testing.T, src subprocess.Source) (*subprocess.Program, error) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if src.Program == nil {
		src.Program = program
	}
	p, err := subprocess.Open(t.Context(), subprocess.Options{Command: []string{"/proc/self/exe", subprocess.Command}}, src)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

func newActor(t *testing.T) *subprocess.Program {
	t.Helper()
	p, err := open(t, subprocess.Source{Name: "actor", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask runs one turn of an actor and returns its note.
func ask(t *testing.T, ctx context.Context, p *subprocess.Program, do, with string) (string, *sandbox.Exit) {
	t.Helper()
	return askOf(t, ctx, p, "default", do, with)
}

func askOf(t *testing.T, ctx context.Context, p *subprocess.Program, tenant, do, with string) (string, *sandbox.Exit) {
	t.Helper()
	input, _ := json.Marshal(map[string]string{"do": do, "with": with})
	res := p.Turn(ctx, sandbox.Turn{Tenant: tenant, Limits: sandbox.Limits{Memory: 256 << 20}, Input: input, Ops: sandbox.Instant(
		func(_ context.Context, op abi.Op, req []byte) ([]byte, *abi.Error) {
			if len(req) == 0 {
				return nil, abi.Errorf(abi.CodeNotFound, op, "key", "no such key")
			}
			return append([]byte("answer to "), req...), nil
		}), Clock: &clock{time.Unix(1, 0)}})
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
