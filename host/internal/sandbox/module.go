package sandbox

import (
	"context"

	"github.com/tetratelabs/wazero"

	"skep/abi"
)

// Module is one compiled module. It is safe for concurrent use and lives as
// long as its engine.
type Module struct {
	engine     *Engine
	digest     string
	size       int
	compiled   wazero.CompiledModule
	seed       [32]byte
	minMemory  int64
	descriptor *abi.Descriptor
}

// Digest is the sha256 of the original bytes, in hexadecimal.
func (m *Module) Digest() string { return m.digest }

// Size is the number of original bytes.
func (m *Module) Size() int { return m.size }

// Descriptor says what the module is. It must not be changed.
func (m *Module) Descriptor() *abi.Descriptor { return m.descriptor }

// Turn runs one turn in an instance that nobody used before and nobody will
// use again. It returns soon after ctx ends, whatever the guest does; the
// context's cause is in the exit.
func (m *Module) Turn(ctx context.Context, t Turn) Result {
	if err := m.engine.enter(); err != nil {
		return Result{Exit: &Exit{Kind: ExitHost, Message: err.Error(), Cause: err}}
	}
	defer m.engine.running.Done()
	r := newRun(ctx, m, t)
	exit := r.fence(func() *Exit {
		if exit := r.start(); exit != nil {
			return exit
		}
		r.begin()
		status, exit := r.callStatus(abi.ExportTurn, uint64(len(t.Input)))
		if exit != nil {
			return exit
		}
		return r.finish(status)
	})
	return r.result(exit)
}
