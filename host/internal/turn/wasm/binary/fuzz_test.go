package binary_test

import (
	"bytes"
	"crypto/sha256"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn/wasm/binary"
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
		m, err := binary.Admit(wasm, binary.DefaultCaps())
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(64*len(wasm)+1<<20); got > most {
			t.Errorf("allocated %d bytes for %d", got, len(wasm))
		}
		if err != nil {
			checkErrorType(t, err)
			return
		}
		if got := m.Usage().CompileWork; got < 0 || got > binary.DefaultCaps().CompileWork {
			t.Errorf("admitted with an estimate of %d", got)
		}
		out, err := m.Meter(binary.Options{})
		if err != nil {
			t.Fatalf("admitted, but Meter = %v", err)
		}
		sameVerdict(t, wasm, out)
	})
}

func checkErrorType(t *testing.T, err error) {
	var limit *binary.CapError
	var format *binary.FormatError
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
		size, n := encoding.Uvarint(rest[1:])
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

// TestMeterAgrees runs more generated modules than the fuzz seeds hold, and with
// SKEP_SOAK many more.
func TestMeterAgrees(t *testing.T) {
	n := uint64(400)
	switch {
	case testing.Short():
		n = 50
	case os.Getenv("SKEP_SOAK") != "":
		n = 20_000
	}
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < n; seed += parts {
				agree(t, randomBytes(1000+seed, 600))
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
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
	memory  [sha256.Size]byte // digest: the race detector looks at each byte that a hash in Go reads
	fuel    int64
}

func agree(t *testing.T, data []byte) {
	wasm := generate(data)
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		t.Fatalf("generated module refused: %v", err)
	}
	if most := binary.LargestCharge(m); most > 300 {
		t.Errorf("a charge of %d units", most)
	}
	metered, err := m.Meter(binary.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Meter(binary.Options{})
	if err != nil || !bytes.Equal(metered, again) {
		t.Fatal("Meter does not repeat itself")
	}
	// The metered one goes first, within a budget that no generated module should
	// need; the plain one could not be stopped.
	h := &fuelHost{grant: binary.MaxCharge, budget: 200_000_000}
	r, code := compile(t, metered, h)
	defer r.Close(t.Context())
	got, done := observe(t, r, code, h)
	if !done {
		t.Skip("runs too long")
	}
	want := observeOnce(t, wasm, nil)
	exact := observeOnce(t, binary.ExactMeter(m), &fuelHost{grant: 70_000})
	compare(t, "plain", got, want)
	compare(t, "exact", got, exact)
	if got.fuel < exact.fuel {
		t.Errorf("fuel %d, but instructions for %d were executed", got.fuel, exact.fuel)
	}
	*h = fuelHost{grant: 123_456}
	other, _ := observe(t, r, code, h)
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

// compile returns a module and its runtime; h is nil for a plain one.
func compile(t *testing.T, wasm []byte, h *fuelHost) (wazero.Runtime, wazero.CompiledModule) {
	t.Helper()
	r := newRuntime(t, compiler())
	if h != nil {
		h.link(t, r)
	}
	code, err := r.CompileModule(t.Context(), wasm)
	if err != nil {
		t.Fatalf("CompileModule: %v", err)
	}
	return r, code
}

func observeOnce(t *testing.T, wasm []byte, h *fuelHost) outcome {
	r, code := compile(t, wasm, h)
	defer r.Close(t.Context())
	o, _ := observe(t, r, code, h)
	return o
}

func observe(t *testing.T, r wazero.Runtime, code wazero.CompiledModule, h *fuelHost) (o outcome, done bool) {
	mod, err := r.InstantiateModule(t.Context(), code, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("Instantiate: %v", err)
	}
	defer mod.Close(t.Context())
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
	o.memory = sha256.Sum256(view(mod.Memory()))
	if h != nil {
		o.fuel = h.used(mod)
		if left := mod.ExportedGlobal(binary.GlobalStack).Get(); left != binary.DefaultStack && !trapped(o) {
			t.Errorf("%d bytes of stack left, want %d", left, binary.DefaultStack)
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
