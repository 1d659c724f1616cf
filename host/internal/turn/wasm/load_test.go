package wasm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// described makes a module without a descriptor section whose skep_describe
// runs body.
func described(prepare func(b *builder), body ...[]byte) []byte {
	b := newBuilder()
	if prepare != nil {
		prepare(b)
	}
	b.fn("skep_abi_v1", "", "", "")
	b.fn("skep_turn", "i", "i", "", ok)
	b.fn("skep_describe", "", "i", "", body...)
	if b.memory == nil {
		b.mem(1)
	}
	return b.bytes()
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	plain := func(change func(b *builder)) []byte {
		b := newBuilder()
		change(b)
		b.custom("skep.descriptor", descriptor)
		return b.bytes()
	}
	tests := []struct {
		name string
		wasm []byte
		pin  string
		step turn.LoadStep
		key  string
		text string // part of the message
	}{
		{"another digest", newBuilder().agent("", ok), strings.Repeat("0", 64), turn.StepDigest, "sha256", "pinned is"},
		{"no wasm", []byte("MZ"), "", turn.StepAdmit, "", "wasm"},
		{"too large", append([]byte("\x00asm\x01\x00\x00\x00"), make([]byte, 16<<20)...), "", turn.StepAdmit, "limits.module.size", "limits.module"},
		{"reserved export", plain(func(b *builder) { b.fn("__skep_slice", "", "", "") }), "", turn.StepAdmit, "", "__skep"},
		{"no marker", plain(func(b *builder) { b.fn("skep_turn", "i", "i", "", ok); b.mem(1) }), "", turn.StepABI, "", "no skep_abi_v1 export"},
		{"another version", plain(func(b *builder) {
			b.fn("skep_abi_v2", "", "", "")
			b.fn("skep_turn", "i", "i", "", ok)
			b.mem(1)
		}), "", turn.StepABI, "", "the marker skep_abi_v2 speaks ABI version 2, this host version 1: upgrade skep, or rebuild"},
		{"two markers", plain(func(b *builder) { b.fn("skep_abi_v2", "", "", ""); b.agent("", ok) }), "", turn.StepABI, "", "several markers"},
		{"no memory", plain(func(b *builder) { b.fn("skep_abi_v1", "", "", ""); b.fn("skep_turn", "i", "i", "", ok) }), "", turn.StepABI, "", "no memory"},
		{"no turn", plain(func(b *builder) { b.fn("skep_abi_v1", "", "", ""); b.mem(1) }), "", turn.StepABI, "", `"skep_turn"`},
		{"wrong turn", plain(func(b *builder) {
			b.fn("skep_abi_v1", "", "", "")
			b.fn("skep_turn", "", "i", "", ok)
			b.mem(1)
		}), "", turn.StepABI, "", "skep_turn as () -> (i32), but it must be (i32) -> (i32)"},
		{"unknown import", plain(func(b *builder) { b.importFunc("env", "fopen", "ii", "i"); b.agent("", ok) }), "", turn.StepABI, "", "env.fopen (i32, i32) -> (i32)"},
		{"a file", plain(func(b *builder) { b.importFunc(wasiModule, "path_open", "iiiiiIIii", "i"); b.agent("", ok) }), "", turn.StepABI, "", "no files"},
		{"wrong import", plain(func(b *builder) { b.importFunc("skep_v1", "call", "iiii", "I"); b.agent("", ok) }), "", turn.StepABI, "", "skep_v1.call as (i32, i32, i32, i32) -> (i64), but it is (i32, i32, i32, i32, i32) -> (i64)"},
		{"invalid code", newBuilder().agent("", i64c(0)), "", turn.StepCompile, "", "not valid WebAssembly"},
		{"trap in describe", described(nil, unreachable), "", turn.StepDescribe, "", "skep_describe: trap"},
		{"loop in describe", described(nil, forever(), ok), "", turn.StepDescribe, "", "used up its fuel of the start"},
		{"describe fails", described(nil, i32c(1)), "", turn.StepDescribe, "", "without a message"},
		{"describes nothing", described(nil, ok), "", turn.StepDescribe, "", "descriptor"},
		{"descriptor of another version", func() []byte {
			b := newBuilder()
			b.agent("", ok)
			b.customs = nil
			b.custom("skep.descriptor", `{"abi":2,"name":"x","version":"1"}`)
			return b.bytes()
		}(), "", turn.StepDescribe, "", "ABI version 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := engine(t).Load(t.Context(), Source{Name: "file:x.wasm", Wasm: tt.wasm, SHA256: tt.pin})
			var refused *turn.LoadError
			if !errors.As(err, &refused) {
				t.Fatalf("error %v, want a *LoadError", err)
			}
			if refused.Step != tt.step || refused.Key != tt.key || refused.Name != "file:x.wasm" {
				t.Errorf("step %s, key %q, name %q; want %s, %q: %v", refused.Step, refused.Key, refused.Name, tt.step, tt.key, err)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("message %q lacks %q", err, tt.text)
			}
		})
	}
}

func TestLoadAcceptsThePinnedDigest(t *testing.T) {
	t.Parallel()
	e := engine(t)
	wasm := newBuilder().agent("", ok)
	m, err := e.Load(t.Context(), Source{Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load(t.Context(), Source{Wasm: wasm, SHA256: strings.ToUpper(m.Digest())}); err != nil {
		t.Error(err)
	}
}

func TestDescribeRunsWithoutGrants(t *testing.T) {
	t.Parallel()
	const text = `{"abi":1,"name":"told","version":"2"}`
	var ask, write int
	prepare := func(b *builder) {
		ask = b.importFunc("skep_v1", "call", "iiiii", "I")
		write = b.importFunc("skep_v1", "output_write", "ii", "i")
		b.mem(1)
		b.segment(0, text)
	}
	b := newBuilder()
	prepare(b)
	wasm := described(prepare,
		i32c(int64(abi.OpMail)), i32c(0), i32c(2), i32c(64), i32c(64), callf(ask), expect64(-int64(abi.CodeDenied)),
		i32c(0), i32c(int64(len(text))), callf(write), drop, ok)
	if d := load(t, wasm).Descriptor(); d.Name != "told" {
		t.Errorf("descriptor %+v", d)
	}
}

func TestWrongABIVersionIsRecognisable(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.fn("skep_abi_v7", "", "", "")
	_, err := engine(t).Load(context.Background(), Source{Wasm: b.bytes()})
	if !errors.Is(err, abi.ErrVersion) {
		t.Errorf("%v is no abi.ErrVersion", err)
	}
	caps := binary.DefaultCaps()
	caps.Functions = 1
	e, err := New(t.Context(), Options{Caps: caps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	_, err = e.Load(t.Context(), Source{Wasm: newBuilder().agent("", ok)})
	var tooLarge *binary.CapError
	if !errors.As(err, &tooLarge) || tooLarge.Cap != "functions" {
		t.Errorf("%v, want the cap functions", err)
	}
}
