package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// corpusTurns is how often every module runs: later turns show that the first one
// left nothing, also in an instance that the pool kept.
const corpusTurns = 3

// Every hostile module is refused or stopped, with the error it names; the same
// way each time; and the host serves others as before. None takes more memory
// meanwhile than its limits and tables explain. It runs before the tests that are
// parallel: it keeps all processors busy, and some of those look at the clock.
func TestCorpus(t *testing.T) {
	dir := t.TempDir() + "/cache"
	e := withChild(t, dir, ChildCompiler{CPU: 3 * time.Second, Memory: 512 << 20, Wall: time.Hour})
	good := healthy(t, e)
	t.Run("each", func(t *testing.T) {
		for _, h := range corpus(t) {
			t.Run(h.name, func(t *testing.T) {
				t.Parallel()
				m, err := e.Load(t.Context(), Source{Name: h.name, Wasm: h.wasm(t), Trusted: h.trusted()})
				if err != nil || h.outcome == "refused" {
					h.checkRefusal(t, err)
				} else {
					h.checkTurns(t, m)
				}
				good(t)
			})
		}
	})
	t.Run("growth", func(t *testing.T) { checkGrowth(t, dir) })
}

// trusted is false: these are strangers. Only with the race detector, which makes a
// child ten times slower, those that compile are compiled in this process.
func (h *hostile) trusted() bool { return slowdown > 1 && h.step != turn.StepCompile }

// healthy loads an agent that returns its input, and returns what makes sure
// that it still does.
func healthy(t *testing.T, e *Engine) func(t *testing.T) {
	b := newBuilder()
	read := b.importFunc(abi.ImportModule, abi.ImportInputRead, "iii", "i")
	write := b.importFunc(abi.ImportModule, abi.ImportOutputWrite, "ii", "i")
	m, err := e.Load(t.Context(), Source{Name: "healthy", Trusted: true, Wasm: b.agent("",
		i32c(0), i32c(0), get(0), callf(read), drop, i32c(0), get(0), callf(write), drop, ok)})
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		in := []byte(fmt.Sprintf(`{"state":%q}`, t.Name()))
		if r := play(t, m, turn.Turn{Input: in}); r.Exit != nil || !bytes.Equal(r.Output, in) {
			t.Errorf("a healthy agent afterwards: %q, %v", r.Output, r.Exit)
		}
	}
}

func (h *hostile) checkRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *turn.LoadError
	switch {
	case h.outcome != "refused":
		t.Errorf("refused: %v; want %s", err, h.outcome)
	case !errors.As(err, &refused):
		t.Errorf("Load = %v, want a refusal", err)
	case refused.Step != h.step || refused.Key != h.key || !strings.Contains(refused.Err.Error(), h.err):
		t.Errorf("refused at %s (%s): %v\nwant at %s (%s): %s",
			refused.Step, refused.Key, refused.Err, h.step, h.key, h.err)
	}
}

func (h *hostile) checkTurns(t *testing.T, m *Module) {
	t.Helper()
	var first turn.Result
	for n := range corpusTurns {
		r := play(t, m, h.turn(n))
		h.checkExit(t, r.Exit)
		if limits := h.limits.WithDefaults(); r.Memory > limits.Memory || r.Fuel > limits.Fuel+binary.MaxCharge+turn.MaxRequest {
			t.Errorf("used %d bytes and %d units, limits %+v", r.Memory, r.Fuel, limits)
		}
		if n == 0 {
			first = r
		}
		if h.outcome == string(turn.ExitCPU) {
			continue // the one outcome that depends on the machine
		}
		if r.Fuel != first.Fuel || !bytes.Equal(r.Output, first.Output) {
			t.Errorf("turn %d: %d units, %.100q; the first: %d, %.100q", n, r.Fuel, r.Output, first.Fuel, first.Output)
		}
	}
}

// turn is turn n of a module. Its input is what only this turn may know.
func (h *hostile) turn(n int) turn.Turn {
	in := bytes.Repeat([]byte(fmt.Sprintf("secret %d ", n)), h.input/9+8)
	return turn.Turn{Input: in[:max(h.input, 64)], Clock: newClock(), Ops: &fakeOps{answer: corpusOps[h.ops]}, Limits: h.limits}
}

func (h *hostile) checkExit(t *testing.T, exit *turn.Exit) {
	t.Helper()
	kind := turn.ExitKind(h.outcome)
	if kind == "ok" {
		kind = ""
	}
	wantExit(t, exit, kind, h.key)
	if exit != nil && !strings.Contains(exit.Message, h.err) {
		t.Errorf("exit %q\nwant %q", exit.Message, h.err)
	}
}

// corpusOps are answers of ops, by the name a module gives.
var corpusOps = map[string]func(context.Context, abi.Op, []byte) ([]byte, *abi.Error){
	"": nil,
	"large": func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		return bytes.Repeat([]byte("x"), 200_000), nil
	},
	"failing": func(_ context.Context, op abi.Op, _ []byte) ([]byte, *abi.Error) {
		return nil, abi.Errorf(abi.CodeDenied, op, "grant", "%s", strings.Repeat("no ", 1300))
	},
}

// The corpus breaks every cap and comes to every end that a guest can cause.
func TestCorpusIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	list := corpus(t)
	for _, h := range list {
		seen[h.outcome], seen[h.key], seen[string(h.step)] = true, true, true
		if _, ok := corpusOps[h.ops]; !ok {
			t.Errorf("%s: there are no ops %q", h.name, h.ops)
		}
	}
	if len(list) < 60 {
		t.Errorf("%d modules, at least 60", len(list))
	}
	want := []string{"refused", "ok", turn.KeyMemory, turn.KeyStack, turn.KeyFuel, turn.KeyCPU, turn.KeyOutput}
	for _, kind := range []turn.ExitKind{turn.ExitFailed, turn.ExitTrap, turn.ExitAbort, turn.ExitProc, turn.ExitFuel, turn.ExitCPU, turn.ExitStack,
		turn.ExitMemory, turn.ExitOutput} { // the guest causes no deadline and no cancellation, and must not cause host
		want = append(want, string(kind))
	}
	for _, step := range []turn.LoadStep{turn.StepAdmit, turn.StepABI, turn.StepCompile, turn.StepDescribe} {
		want = append(want, string(step))
	}
	for field := range reflect.TypeFor[binary.Caps]().Fields() {
		want = append(want, "limits.module."+capKey(field.Name))
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no module of the corpus ends with %s", w)
		}
	}
}

// capKey writes the name of a field of Caps as its key: DataSegments is
// data_segments.
func capKey(field string) string {
	var key strings.Builder
	for i, r := range field {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				key.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		key.WriteRune(r)
	}
	return key.String()
}
