package wasm

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// childArg makes the test binary the compiler's child.
const childArg = "__compile"

// withChild returns an engine whose modules of strangers are compiled in a
// child, over a cache of its own.
func withChild(t *testing.T, dir string, c ChildCompiler) *Engine {
	t.Helper()
	return withChildAndCaps(t, dir, c, binary.Caps{})
}

func withChildAndCaps(t *testing.T, dir string, c ChildCompiler, caps binary.Caps) *Engine {
	t.Helper()
	if c.Command == nil {
		c.Command = []string{os.Args[0], childArg}
	}
	e, err := New(context.Background(), Options{CacheDir: dir, Child: &c, Caps: caps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// bomb takes a compiler far longer than its size lets expect: many branches
// over many locals.
func bomb(functions int) []byte {
	b := newBuilder()
	var body [][]byte
	for range 4000 {
		body = append(body, []byte{0x20, 0, 0x04, 0x40, 0x20, 1, 0x21, 2, 0x0b})
	}
	for range functions {
		b.fn("", "i", "", strings.Repeat("i", 250), body...)
	}
	return b.agent("", ok)
}

func TestChildCompiles(t *testing.T) {
	dir := t.TempDir() + "/cache"
	wasm := newBuilder().agent("", ok)
	m, err := withChild(t, dir, ChildCompiler{}).Load(t.Context(), Source{Name: "a", Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	if res := play(t, m, turn.Turn{}); res.Exit != nil {
		t.Error(res.Exit)
	}
	// What is in the cache needs no child.
	none := ChildCompiler{Command: []string{"/nonexistent"}}
	if _, err := withChild(t, dir, none).Load(t.Context(), Source{Name: "a", Wasm: wasm}); err != nil {
		t.Errorf("from the cache: %v", err)
	}
	other := newBuilder()
	other.mem(2)
	e := withChild(t, dir, none)
	if _, err := e.Load(t.Context(), Source{Name: "b", Wasm: other.agent("", ok)}); err == nil {
		t.Error("a stranger's module was compiled without a child")
	}
	if _, err := e.Load(t.Context(), Source{Name: "b", Wasm: other.bytes(), Trusted: true}); err != nil {
		t.Errorf("a trusted module: %v", err)
	}
}

// A module that an operator let in and that would take the compiler minutes or
// gigabytes is a load error, and the host goes on.
func TestChildIsStopped(t *testing.T) {
	caps := binary.DefaultCaps()
	caps.CompileWork = math.MaxInt64
	for name, c := range map[string]struct {
		child ChildCompiler
		want  string
	}{
		"computing time": {ChildCompiler{CPU: time.Second}, "computing time"},
		"wall time":      {ChildCompiler{Wall: 300 * time.Millisecond}, "longer than 300ms"},
		"memory":         {ChildCompiler{Memory: 48 << 20}, "48 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withChildAndCaps(t, t.TempDir()+"/cache", c.child, caps)
			_, err := e.Load(t.Context(), Source{Name: "bomb", Wasm: bomb(100)})
			var refused *turn.LoadError
			if !errors.As(err, &refused) || refused.Step != turn.StepCompile || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Load = %v, want a refusal at compile with %q", err, c.want)
			}
			if _, err := e.Load(t.Context(), Source{Name: "good", Wasm: newBuilder().agent("", ok), Trusted: true}); err != nil {
				t.Errorf("the engine afterwards: %v", err)
			}
		})
	}
}

func TestChildRefusesInvalid(t *testing.T) {
	e := withChild(t, t.TempDir()+"/cache", ChildCompiler{})
	// An f32 where a status belongs: admission does not check types.
	_, err := e.Load(t.Context(), Source{Name: "bad", Wasm: newBuilder().agent("", []byte{0x43, 0, 0, 0, 0})})
	if err == nil || !strings.Contains(err.Error(), "not valid WebAssembly") {
		t.Errorf("Load = %v", err)
	}
}
