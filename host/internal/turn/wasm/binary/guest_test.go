package binary_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"skep/host/internal/turn/wasm/binary"
)

// goGuest is a guest of the standard compiler, built once.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "binary")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/goguest/main.go")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return os.ReadFile(out)
})

func mustGoGuest(t testing.TB) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	wasm, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// run instantiates a module of either kind; h is nil for a plain one.
func run(t testing.TB, wasm []byte, h *fuelHost) *instance {
	t.Helper()
	r := newRuntime(t, compiler())
	if h != nil {
		h.link(t, r)
	}
	wasi_snapshot_preview1.MustInstantiate(t.Context(), r)
	mod, err := r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return &instance{h, mod}
}

// calls are what the Go guest is asked to do.
var calls = []struct {
	name string
	arg  uint64
}{{"json_round", 20}, {"sort_round", 20_000}, {"spawn", 500}, {"fib", 20}}

// TestGoGuest runs real code: unmodified standard Go, with its garbage collector
// and scheduler, gives the same results metered and plain, and the same fuel twice.
func TestGoGuest(t *testing.T) {
	wasm := mustGoGuest(t)
	metered := mustMeter(t, wasm, binary.Options{})
	plain := run(t, wasm, nil)
	first := run(t, metered, &fuelHost{grant: 100_000})
	second := run(t, metered, &fuelHost{grant: 33_333})
	for _, c := range calls {
		want, err := plain.call(t, c.name, c.arg)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []*instance{first, second} {
			got, err := i.call(t, c.name, c.arg)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s(%d) = %v, %v, want %v", c.name, c.arg, got, err, want)
			}
		}
		if a, b := first.used(first.mod), second.used(second.mod); a != b {
			t.Errorf("after %s: fuel %d, and %d the second time", c.name, a, b)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	wasm := mustGoGuest(b)
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, err := binary.Admit(wasm, binary.DefaultCaps()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMeter(b *testing.B) {
	wasm := mustGoGuest(b)
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, err := m.Meter(binary.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// loopy is a module whose functions do nothing but turn and call: (i32) -> i32.
func loopy() []byte {
	b := &builder{}
	unary := b.typ([]byte{i32}, []byte{i32})
	b.memory(1)
	turn := cat(get(0), konst(1), op(iSub), tee(0), brIf(0))
	b.exportFn("fib", b.fn(unary, nil, get(0), konst(2), op(iLtU, 0x04, i32), get(0), op(0x05),
		get(0), konst(1), op(iSub), call(0), get(0), konst(2), op(iSub), call(0), op(iAdd, end)))
	b.exportFn("tight", b.fn(unary, []uint64{1, i32},
		loop(get(1), get(0), op(iAdd), set(1), turn), get(1)))
	b.exportFn("hash", b.fn(unary, []uint64{1, i32}, loop(
		get(1), konst(16777619), op(iMul), get(0), konst(0xffff), op(iAnd), op(load8, 0, 0), op(iXor), set(1),
		get(0), konst(0xffff), op(iAnd), get(1), op(0x3a, 0, 0), turn), get(1)))
	b.exportFn("rare", b.fn(unary, []uint64{1, i32}, loop(
		get(0), konst(1023), op(iAnd, iEqz), ifThen(repeat(30, get(1), konst(3), op(iMul), set(1))),
		get(1), get(0), op(iXor), set(1), turn), get(1)))
	b.exportFn("bulk", b.fn(unary, nil, loop(konst(0), konst(1000), konst(64), misc(miCopy, 0, 0), turn), get(0)))
	return b.bytes()
}

// BenchmarkGuests compares plain and metered code. The two take turns, and the
// fastest of each counts: so the ratio holds also on a busy machine.
func BenchmarkGuests(b *testing.B) {
	small := loopy()
	for _, c := range []struct {
		name string
		arg  uint64
	}{{"tight", 100_000}, {"hash", 100_000}, {"rare", 100_000}, {"bulk", 10_000}, {"fib", 22}} {
		compareGuests(b, "wasm", small, c.name, c.arg)
	}
	if testing.Short() {
		return
	}
	guest := mustGoGuest(b)
	for _, c := range calls {
		compareGuests(b, "go", guest, c.name, c.arg)
	}
}

func compareGuests(b *testing.B, lang string, wasm []byte, name string, arg uint64) {
	plain := run(b, wasm, nil)
	metered := mustMeter(b, wasm, binary.Options{})
	once := func(i *instance) time.Duration {
		start := time.Now()
		if _, err := i.call(b, name, arg); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	for _, slice := range []int64{20_000, 100_000, 200_000, 1_000_000} {
		i := run(b, metered, &fuelHost{grant: slice})
		b.Run(fmt.Sprintf("%s-%s/slice=%dk", lang, name, slice/1000), func(b *testing.B) {
			quick, slow := time.Hour, time.Hour
			for b.Loop() {
				quick = min(quick, once(plain))
				slow = min(slow, once(i))
			}
			b.ReportMetric(float64(quick.Nanoseconds()), "plain-ns")
			b.ReportMetric(float64(slow.Nanoseconds()), "metered-ns")
			b.ReportMetric(float64(slow)/float64(quick), "ratio")
		})
	}
}
