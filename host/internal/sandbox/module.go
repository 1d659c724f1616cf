package sandbox

import (
	"context"
	"strconv"

	"github.com/tetratelabs/wazero"

	"skep/abi"
	"skep/host/internal/wasmbin"
)

// Module is one compiled module. It is safe for concurrent use and lives as
// long as its engine, or until it is unloaded.
type Module struct {
	engine     *Engine
	use        *use
	digest     string
	size       int
	compiled   wazero.CompiledModule
	seed       [32]byte
	data       []wasmbin.Segment // active ones
	globals    []string          // exports of the guest's mutable globals
	minMemory  int64
	maxMemory  int64
	overhead   int64 // estimate of what an instance takes besides its memory
	descriptor *abi.Descriptor
	// restless says why instances cannot be made as new; empty: they can.
	restless string
}

// Estimates of what the engine allocates for an instance.
const (
	instanceBytes = 16 << 10
	globalBytes   = 64
	elementBytes  = 24 // in a table, with what stands for its function
)

// newModule gathers what instances of a module need to know.
func newModule(e *Engine, digest string, admitted *wasmbin.Module, bare *wasmbin.Bare) *Module {
	m := &Module{engine: e, use: &use{}, digest: digest, seed: e.imageSeed(digest), data: bare.Data, restless: bare.Restless}
	for _, mem := range admitted.Memories { // there is one
		m.minMemory = int64(mem.Min) * page
		m.maxMemory = 1 << 32
		if mem.HasMax {
			m.maxMemory = int64(mem.Max) * page
		}
	}
	for i := range admitted.MutableGlobals() {
		m.globals = append(m.globals, wasmbin.GlobalPrefix+strconv.Itoa(i))
	}
	m.overhead = instanceBytes + globalBytes*int64(len(admitted.Globals))
	for _, t := range admitted.Tables {
		m.overhead += elementBytes * int64(t.Min)
	}
	return m
}

// MinMemory is the bytes of linear memory the module starts with; a turn whose
// limit is lower cannot run.
func (m *Module) MinMemory() int64 { return m.minMemory }

// Digest is the sha256 of the original bytes, in hexadecimal.
func (m *Module) Digest() string { return m.digest }

// Size is the number of original bytes.
func (m *Module) Size() int { return m.size }

// Descriptor says what the module is. It must not be changed.
func (m *Module) Descriptor() *abi.Descriptor { return m.descriptor }

// Restless says why every turn starts the module anew, instead of from an image;
// it is empty for most modules.
func (m *Module) Restless() string { return m.restless }

// Turn runs one turn in an instance that is as new, whoever used it before. It
// returns soon after ctx ends, whatever the guest does; the context's cause is in
// the exit.
func (m *Module) Turn(ctx context.Context, t Turn) Result { return m.invoke(ctx, t, abi.ExportTurn) }

// Action runs one call of an action, as Turn runs a turn: in an instance that is
// as new and nobody else's. The output of one that ends well is a JSON value, or
// empty.
func (m *Module) Action(ctx context.Context, t Turn) Result {
	return m.invoke(ctx, t, abi.ExportAction)
}

func (m *Module) invoke(ctx context.Context, t Turn, name string) Result {
	if err := m.begin(); err != nil {
		return Result{Exit: &Exit{Kind: ExitHost, Message: err.Error(), Cause: err}}
	}
	defer m.end()
	r := newRun(ctx, m, t)
	exit := r.fence(func() *Exit {
		if exit := r.start(); exit != nil {
			return exit
		}
		r.begin()
		r.show()
		status, exit := r.callStatus(name, uint64(len(t.Input)))
		r.show()
		if exit != nil {
			return exit
		}
		return r.finish(name, status)
	})
	return r.result(exit)
}
