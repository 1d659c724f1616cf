package binary_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn/wasm/binary"
)

var (
	errOutOfFuel  = errors.New("out of fuel")
	errOutOfStack = errors.New("out of stack")
)

// fuelHost stands for the sandbox: it grants slices out of a budget.
type fuelHost struct {
	grant  int64 // units per tick
	budget int64 // 0: no end

	granted int64
	ticks   int
}

func (h *fuelHost) tick(_ context.Context, mod api.Module, _ []uint64) {
	h.ticks++
	g := mod.ExportedGlobal(binary.GlobalSlice).(api.MutableGlobal)
	if h.budget != 0 && h.granted >= h.budget {
		panic(errOutOfFuel)
	}
	h.granted += h.grant
	g.Set(uint64(int64(g.Get()) + h.grant))
}

func (h *fuelHost) overflow(context.Context, api.Module, []uint64) { panic(errOutOfStack) }

// used returns the fuel that mod has taken, if it alone was granted any.
func (h *fuelHost) used(mod api.Module) int64 {
	return h.granted - int64(mod.ExportedGlobal(binary.GlobalSlice).Get())
}

func (h *fuelHost) link(t testing.TB, r wazero.Runtime) {
	t.Helper()
	_, err := r.NewHostModuleBuilder(binary.HostModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(h.tick), nil, nil).
		Export(binary.HostTick).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(h.overflow), nil, nil).
		Export(binary.HostOverflow).
		Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func newRuntime(t testing.TB, cfg wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), cfg)
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func compiler() wazero.RuntimeConfig { return wazero.NewRuntimeConfigCompiler() }

func mustMeter(t testing.TB, wasm []byte, o binary.Options) []byte {
	t.Helper()
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		t.Fatalf("Admit: %v", err)
	}
	out, err := m.Meter(o)
	if err != nil {
		t.Fatalf("Meter: %v", err)
	}
	return out
}

// instance is a metered module and its host.
type instance struct {
	*fuelHost
	mod api.Module
}

func instantiate(t testing.TB, wasm []byte, h *fuelHost, o binary.Options) *instance {
	t.Helper()
	if h.grant == 0 {
		h.grant = 100_000
	}
	r := newRuntime(t, compiler())
	h.link(t, r)
	mod, err := r.InstantiateWithConfig(t.Context(), mustMeter(t, wasm, o), wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("Instantiate: %v", err)
	}
	return &instance{h, mod}
}

func (i *instance) call(t testing.TB, name string, args ...uint64) ([]uint64, error) {
	t.Helper()
	return i.mod.ExportedFunction(name).Call(t.Context(), args...)
}
