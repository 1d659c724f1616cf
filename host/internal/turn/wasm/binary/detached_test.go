package binary_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn/wasm/binary"
)

func mustDetach(t testing.TB, wasm []byte) *binary.Detached {
	t.Helper()
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		t.Fatalf("Admit: %v", err)
	}
	b, err := m.MeterDetached(binary.Options{})
	if err != nil {
		t.Fatalf("MeterDetached: %v", err)
	}
	return b
}

var errOutOfBounds = errors.New("out of bounds")

// begin makes an instance of a detached module what an instance of the metered one
// is from the beginning.
func begin(t testing.TB, b *binary.Detached) (*instance, error) {
	t.Helper()
	h := &fuelHost{grant: 100_000}
	r := newRuntime(t, compiler())
	h.link(t, r)
	mod, err := r.InstantiateWithConfig(t.Context(), b.Wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("Instantiate: %v", err)
	}
	for _, s := range b.Data {
		if !mod.Memory().Write(s.Offset, s.Bytes) {
			return nil, fmt.Errorf("data[%d]: %w", s.Index, errOutOfBounds)
		}
	}
	if start := mod.ExportedFunction(binary.ExportStart); start != nil {
		if _, err := start.Call(t.Context()); err != nil {
			return nil, err
		}
	}
	return &instance{h, mod}, nil
}

func memoryOf(t testing.TB, mod api.Module) []byte {
	t.Helper()
	b, ok := mod.Memory().Read(0, mod.Memory().Size())
	if !ok {
		t.Fatal("no memory")
	}
	return bytes.Clone(b)
}

// active adds a segment at an offset, in one of the two forms.
func (b *builder) active(form byte, offset int64, data string) {
	head := []byte{0}
	if form == 2 {
		head = []byte{2, 0}
	}
	b.add(sData, cat(head, konst(offset), op(end), vec([]byte(data)))...)
}

func TestDetachedDataIsWhereItWas(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		segments int // detached ones
		add      func(b *builder)
	}{
		{"apart, and in any order", 4, func(b *builder) {
			b.active(0, 60_000, "far")
			b.active(0, 100, "one")
			b.active(2, 103, "two") // behind it at once
			b.active(0, 120, "near")
			b.active(0, 0, "lower")
			b.active(0, 2*65536-3, "end")
			b.active(0, 2*65536, "")
		}},
		{"one over the other", 3, func(b *builder) {
			b.active(0, 100, "one")
			b.active(0, 101, "NE")
			b.active(0, 110, "gap")
		}},
	}
	for _, tt := range tests {
		b := &builder{}
		b.memory(2)
		b.export("memory", 2, 0)
		tt.add(b)
		detached := mustDetach(t, b.bytes())
		got, err := begin(t, detached)
		if err != nil {
			t.Fatal(err)
		}
		want := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{})
		if !bytes.Equal(memoryOf(t, got.mod), memoryOf(t, want.mod)) || len(detached.Data) != tt.segments {
			t.Errorf("%s: memory equal %v, from %+v", tt.name,
				bytes.Equal(memoryOf(t, got.mod), memoryOf(t, want.mod)), detached.Data)
		}
	}
}

// Random segments, overlapping and touching, give the same memory.
func TestDetachedDataRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := &builder{}
		b.memory(1)
		b.export("memory", 2, 0)
		for at := int64(0); b.counts[sData] < 40; {
			if at += rnd.Int64N(100); seed%2 == 1 && rnd.IntN(8) == 0 {
				at = rnd.Int64N(3000)
			}
			data := strings.Repeat(string(rune('a'+rnd.IntN(26))), rnd.IntN(30))
			b.active(byte(2*rnd.IntN(2)), at, data)
			at += int64(len(data))
		}
		got, err := begin(t, mustDetach(t, b.bytes()))
		if err != nil {
			t.Fatal(err)
		}
		want := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{})
		if !bytes.Equal(memoryOf(t, got.mod), memoryOf(t, want.mod)) {
			t.Fatalf("seed %d: another memory", seed)
		}
	}
}

func TestDetachedDataOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, offset := range []int64{65536 - 2, 65536 + 1, -1, -1 << 31} {
		b := &builder{}
		b.memory(1)
		b.active(0, 65536-5, "fits")
		b.active(0, offset, "not")
		_, err := begin(t, mustDetach(t, b.bytes()))
		if !errors.Is(err, errOutOfBounds) || !strings.Contains(err.Error(), "data[1]") {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
}

// Segments that memory.init names keep their index and what they hold.
func TestDetachedKeepsWhatIsNamed(t *testing.T) {
	t.Parallel()
	b := &builder{}
	none := b.typ(nil, nil)
	b.memory(1)
	b.export("memory", 2, 0)
	b.active(0, 500, "active")
	b.passive([]byte("unnamed"))
	b.passive([]byte("passive"))
	b.active(0, 600, "behind")
	b.passive([]byte("behind, too"))
	init := func(segment uint64, to, n int64) []byte {
		return cat(konst(to), konst(0), konst(n), misc(miInit, segment, 0))
	}
	b.exportFn("passive", b.fn(none, nil, init(2, 8, 7)))
	b.exportFn("active", b.fn(none, nil, init(0, 8, 1)))
	b.exportFn("nothing", b.fn(none, nil, init(0, 8, 0)))
	detached := mustDetach(t, b.bytes())
	i, err := begin(t, detached)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"passive", "nothing"} {
		if _, err := i.call(t, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := i.call(t, "active"); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Errorf("an active segment was read again: %v", err)
	}
	memory := memoryOf(t, i.mod)
	for at, want := range map[int]string{8: "passive", 500: "active", 600: "behind"} {
		if got := string(memory[at : at+len(want)]); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if bytes.Contains(detached.Wasm, []byte("behind")) || !bytes.Contains(detached.Wasm, []byte("unnamed")) {
		t.Error("other segments stay than those up to the last one named")
	}
	if detached.HiddenState != "" {
		t.Errorf("hidden state: %s", detached.HiddenState)
	}
}

func TestDetachedStart(t *testing.T) {
	t.Parallel()
	b := &builder{}
	none := b.typ(nil, nil)
	b.memory(1)
	b.export("memory", 2, 0)
	b.active(0, 0, "\x05")
	b.start(b.fn(none, nil, konst(1), konst(0), op(load8, 0, 0), op(store32, 2, 0)))
	detached := mustDetach(t, b.bytes())
	i, err := begin(t, detached)
	if err != nil {
		t.Fatal(err)
	}
	want := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{})
	if !bytes.Equal(memoryOf(t, i.mod), memoryOf(t, want.mod)) || i.used(i.mod) != want.used(want.mod) {
		t.Errorf("the start did something else, or for %d units instead of %d", i.used(i.mod), want.used(want.mod))
	}

	b = &builder{}
	b.start(b.fn(b.typ(nil, nil), nil, op(unreachable)))
	if _, err := begin(t, mustDetach(t, b.bytes())); err == nil {
		t.Error("a start that traps did not")
	}
}

func TestDetachedRefusesOffsetsItCannotKnow(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.add(sImport, cat(name("m"), name("g"), []byte{3, i32, 0})...)
	b.memory(1)
	b.add(sData, cat([]byte{0}, gget(0), op(end), vec([]byte("x")))...)
	m, err := binary.Admit(b.bytes(), binary.DefaultCaps())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.MeterDetached(binary.Options{}); err == nil {
		t.Error("an offset in an imported global was accepted")
	}
}

func TestHiddenState(t *testing.T) {
	t.Parallel()
	table := func(code ...[]byte) func(b *builder) {
		return func(b *builder) {
			b.table(funcref, 2)
			b.add(sElem, 1, 0, 0)
			b.passive([]byte("x"))
			// In front of it what the survey must read past.
			past := cat(block(block(konst(1), brTable(0, 1, 1))), konst(0x26), op(drop))
			b.fn(b.typ(nil, nil), nil, past, cat(code...))
		}
	}
	null := op(refNull, funcref)
	tests := []struct {
		name  string
		build func(b *builder)
		want  string
	}{
		{"nothing", func(*builder) {}, ""},
		{"numbers", func(b *builder) { b.global(i32, 1); b.global(i64, 1) }, ""},
		{"reading a table", table(konst(0), opU(0x25, 0), op(drop), misc(tiSize, 0), op(drop)), ""},
		{"memory", table(konst(0), konst(0), konst(0), misc(miFill, 0), konst(0), konst(0), konst(0), misc(miCopy, 0, 0),
			konst(0), konst(0), konst(0), misc(miInit, 0, 0), konst(1), op(memGrow, 0), op(drop)), ""},
		{"table.set", table(konst(0), null, opU(0x26, 0)), "table.set"},
		{"table.grow", table(null, konst(0), misc(tiGrow, 0), op(drop)), "table.grow"},
		{"table.fill", table(konst(0), null, konst(0), misc(tiFill, 0)), "table.fill"},
		{"table.copy", table(konst(0), konst(0), konst(0), misc(tiCopy, 0, 0)), "table.copy"},
		{"table.init", table(konst(0), konst(0), konst(0), misc(tiInit, 0, 0)), "table.init"},
		{"data.drop", table(misc(9, 0)), "data.drop"},
		{"elem.drop", table(misc(13, 0)), "elem.drop"},
		{"a reference", func(b *builder) { b.add(sGlobal, funcref, 1, refNull, funcref, end) }, "global 0 is a mutable funcref"},
		{"a constant reference", func(b *builder) { b.add(sGlobal, funcref, 0, refNull, funcref, end) }, ""},
		{"a vector", func(b *builder) {
			b.add(sGlobal, cat([]byte{v128, 1, 0xfd, 0x0c}, make([]byte, 16), op(end))...)
		}, "global 0 is a mutable v128"},
		{"an imported memory", func(b *builder) {
			b.sections[sMemory], b.counts[sMemory] = nil, 0
			b.add(sImport, cat(name("m"), name("x"), []byte{2, 0, 1})...)
		}, "it imports m.x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &builder{}
			b.memory(1)
			tt.build(b)
			got := mustDetach(t, b.bytes()).HiddenState
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("hidden state: %q, want %q", got, tt.want)
			}
		})
	}
}

// A generated module does the same detached and metered, for the same fuel.
func TestDetachedRunsLikeMetered(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		wasm := generate(data)
		detached, err := begin(t, mustDetach(t, wasm))
		if err != nil {
			t.Fatal(err)
		}
		metered := instantiate(t, wasm, &fuelHost{}, binary.Options{})
		for _, f := range []string{"a", "b", "c"} {
			x, errX := detached.call(t, f, 3, 5)
			y, errY := metered.call(t, f, 3, 5)
			if fmt.Sprint(x, errX) != fmt.Sprint(y, errY) || detached.used(detached.mod) != metered.used(metered.mod) {
				t.Fatalf("seed %d, %s: %v %v for %d units, metered %v %v for %d", seed, f,
					x, errX, detached.used(detached.mod), y, errY, metered.used(metered.mod))
			}
			if errX != nil {
				break
			}
		}
		if !bytes.Equal(memoryOf(t, detached.mod), memoryOf(t, metered.mod)) {
			t.Fatalf("seed %d: another memory", seed)
		}
	}
}
