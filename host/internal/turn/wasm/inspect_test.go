package wasm

import (
	"context"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// InspectTurn sees the instance before and after its turn, also one that traps.
func TestInspectTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		body []byte
		kind turn.ExitKind
	}{{"a turn that ends", i32c(1), turn.ExitFailed}, {"a turn that traps", unreachable, turn.ExitTrap}} {
		b := newBuilder()
		b.mem(1)
		n := b.global('i', 7)
		m := load(t, b.agent("", i32c(0), i32c(42), store32(0), i32c(9), gset(n), tt.body))
		var first, globals []int
		res := m.InspectTurn(t.Context(), turn.Turn{Clock: newClock()}, func(memory []byte, g []uint64) {
			first, globals = append(first, int(memory[0])), append(globals, int(g[0]))
		})
		if res.Exit == nil || res.Exit.Kind != tt.kind || tt.kind == turn.ExitFailed && res.Status != abi.StatusError {
			t.Errorf("%s: %v, status %d", tt.name, res.Exit, res.Status)
		}
		if len(first) != 2 || first[0] != 0 || first[1] != 42 || globals[0] != 7 || globals[1] != 9 {
			t.Errorf("%s: saw bytes %v and globals %v", tt.name, first, globals)
		}
	}
}

// Describe runs skep_describe also where the section was read.
func TestDescribeBesideTheSection(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	write := b.importFunc("skep_v1", "output_write", "ii", "i")
	b.mem(1)
	b.segment(0, "other")
	b.fn("skep_describe", "", "i", "", i32c(0), i32c(5), callf(write), drop, ok)
	e := engine(t)
	m := loadInto(t, e, b.agent("", ok))
	if raw, exit := m.Describe(t.Context()); exit != nil || string(raw) != "other" {
		t.Errorf("%q, %v", raw, exit)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, exit := m.Describe(t.Context()); exit == nil || exit.Kind != turn.ExitHost {
		t.Errorf("with a closed engine: %v", exit)
	}
}
