package wasmbin_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/wasmbin"
)

// FuzzAdmit: no input makes Admit panic or allocate out of proportion, what is
// admitted can be metered, and metering neither breaks a valid module nor mends
// an invalid one.
func FuzzAdmit(f *testing.F) {
	for _, b := range bombs {
		if wasm := b.make(); len(wasm) < 4000 {
			f.Add(wasm)
		}
	}
	seeds, _ := filepath.Glob(filepath.Join(specRoot(f), "v2", "testdata", "*.wasm"))
	for i := 0; i < len(seeds); i += 20 {
		if wasm, err := os.ReadFile(seeds[i]); err == nil && len(wasm) < 4000 {
			f.Add(wasm)
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64*len(wasm)+1<<20); got > most {
			t.Errorf("allocated %d bytes for %d", got, len(wasm))
		}
		if err != nil {
			checkErrorType(t, err)
			return
		}
		if got := m.Usage().CompileWork; got < 0 || got > wasmbin.DefaultCaps().CompileWork {
			t.Errorf("admitted with an estimate of %d", got)
		}
		out, err := m.Meter(wasmbin.Options{})
		if err != nil {
			t.Fatalf("admitted, but Meter = %v", err)
		}
		sameVerdict(t, wasm, out)
	})
}

func checkErrorType(t *testing.T, err error) {
	var limit *wasmbin.CapError
	var format *wasmbin.FormatError
	if !errors.As(err, &limit) && !errors.As(err, &format) {
		t.Errorf("Admit = %T %v", err, err)
	}
}

func sameVerdict(t *testing.T, plain, metered []byte) {
	r := newRuntime(t, wazero.NewRuntimeConfigInterpreter())
	_, errPlain := r.CompileModule(t.Context(), withoutCustom(plain))
	_, errMetered := r.CompileModule(t.Context(), metered)
	if (errPlain == nil) != (errMetered == nil) {
		t.Errorf("engine on the plain module: %v, on the metered one: %v", errPlain, errMetered)
	}
}

// withoutCustom drops the custom sections: the engine reads one of them, names,
// and refuses modules for its contents, which Wasm does not.
func withoutCustom(wasm []byte) []byte {
	out := slices.Clone(wasm[:8])
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		all := 1 + n + int(size)
		if rest[0] != 0 {
			out = append(out, rest[:all]...)
		}
		rest = rest[all:]
	}
	return out
}

// FuzzMeterAgrees: a generated module gives the same results, memory and globals
// or the same trap, metered and plain; its fuel repeats, and is never less than
// what was executed.
func FuzzMeterAgrees(f *testing.F) {
	for seed := range uint64(32) {
		f.Add(randomBytes(seed, 400))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			t.Skip("longer inputs only make the module repeat itself")
		}
		agree(t, data)
	})
}

// TestMeterAgrees runs more generated modules than the fuzz seeds hold.
func TestMeterAgrees(t *testing.T) {
	n := uint64(1000)
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		agree(t, randomBytes(1000+seed, 600))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// outcome is what can be seen of a run.
type outcome struct {
	calls   []string // results or trap of each call
	globals []uint64
	memory  uint64 // hash
	fuel    int64
}

func agree(t *testing.T, data []byte) {
	wasm := generate(data)
	m, err := wasmbin.Admit(wasm, wasmbin.DefaultCaps())
	if err != nil {
		t.Fatalf("generated module refused: %v", err)
	}
	if most := wasmbin.LargestCharge(m); most > 300 {
		t.Errorf("a charge of %d units", most)
	}
	metered, err := m.Meter(wasmbin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Meter(wasmbin.Options{})
	if err != nil || !bytes.Equal(metered, again) {
		t.Fatal("Meter does not repeat itself")
	}
	// The metered one goes first, within a budget that no generated module should
	// need; the plain one could not be stopped.
	got, done := observe(t, metered, &fuelHost{grant: wasmbin.MaxCharge, budget: 200_000_000})
	if !done {
		t.Skip("runs too long")
	}
	want, _ := observe(t, wasm, nil)
	exact, _ := observe(t, wasmbin.ExactMeter(m), &fuelHost{grant: 70_000})
	compare(t, "plain", got, want)
	compare(t, "exact", got, exact)
	if got.fuel < exact.fuel {
		t.Errorf("fuel %d, but instructions for %d were executed", got.fuel, exact.fuel)
	}
	other, _ := observe(t, metered, &fuelHost{grant: 123_456})
	if other.fuel != got.fuel {
		t.Errorf("fuel %d with one slice and %d with another", got.fuel, other.fuel)
	}
}

func compare(t *testing.T, name string, got, want outcome) {
	t.Helper()
	if !slices.Equal(got.calls, want.calls) || !slices.Equal(got.globals, want.globals) || got.memory != want.memory {
		t.Errorf("metered: %v %x %x\n%s: %v %x %x", got.calls, got.globals, got.memory,
			name, want.calls, want.globals, want.memory)
	}
}

func observe(t *testing.T, wasm []byte, h *fuelHost) (o outcome, done bool) {
	r := newRuntime(t, compiler())
	if h != nil {
		h.link(t, r)
	}
	defer r.Close(t.Context())
	mod, err := r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("Instantiate: %v", err)
	}
	for i := range genFuncs {
		result, err := mod.ExportedFunction(string(rune('a'+i))).Call(t.Context(), 3, 5)
		if errors.Is(err, errOutOfFuel) || errors.Is(err, errOutOfStack) {
			return o, false
		}
		o.calls = append(o.calls, show(result, err))
	}
	for _, name := range []string{"calls", "g1", "g2"} {
		o.globals = append(o.globals, mod.ExportedGlobal(name).Get())
	}
	sum := fnv.New64a()
	sum.Write(view(mod.Memory()))
	o.memory = sum.Sum64()
	if h != nil {
		o.fuel = h.used(mod)
		if left := mod.ExportedGlobal(wasmbin.GlobalStack).Get(); left != wasmbin.DefaultStack && !trapped(o) {
			t.Errorf("%d bytes of stack left, want %d", left, wasmbin.DefaultStack)
		}
	}
	return o, true
}

func trapped(o outcome) bool {
	return slices.ContainsFunc(o.calls, func(s string) bool { return s[0] != '[' })
}

func view(m api.Memory) []byte {
	b, _ := m.Read(0, m.Size())
	return b
}

func show(results []uint64, err error) string {
	if err != nil {
		return firstLine(err)
	}
	return fmt.Sprint(results)
}
