package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// Module is one compiled module. It is safe for concurrent use and lives as
// long as its engine, or until it is unloaded.
type Module struct {
	engine     *Engine
	use        *moduleUse
	digest     string
	size       int
	compiled   wazero.CompiledModule
	seed       [32]byte
	data       []binary.Segment // active ones
	globals    []string         // exports of the guest's mutable globals
	minMemory  int64
	maxMemory  int64
	overhead   int64 // estimate of what an instance takes besides its memory
	descriptor *abi.Descriptor
	// noImageReason is why instances cannot be reset; empty: they can.
	noImageReason string
}

// MinMemory is the bytes of linear memory the module starts with; a turn whose
// limit is lower cannot run.
func (m *Module) MinMemory() int64 { return m.minMemory }

// Digest is the sha256 of the original bytes, in hexadecimal.
func (m *Module) Digest() string { return m.digest }

// Size is the number of original bytes.
func (m *Module) Size() int { return m.size }

// Descriptor returns the module's descriptor. It must not be changed.
func (m *Module) Descriptor() *abi.Descriptor { return m.descriptor }

// NoImageReason is why every turn starts the module again instead of beginning from
// an image. It is empty for most modules.
func (m *Module) NoImageReason() string { return m.noImageReason }

// Turn runs one turn in a new instance, or in one that was reset to its image. It
// returns soon after ctx ends, whatever the guest does; the context's cause is in
// the exit.
func (m *Module) Turn(ctx context.Context, t turn.Turn) turn.Result {
	return m.invoke(newRun(ctx, m, t), abi.ExportTurn)
}

// InspectTurn runs one turn like Turn. It calls inspect with the instance's memory
// and mutable globals when skep_turn is about to begin and when it has ended,
// however it ended. Inspect must neither change nor keep the memory.
func (m *Module) InspectTurn(ctx context.Context, t turn.Turn, inspect func(memory []byte, globals []uint64)) turn.Result {
	r := newRun(ctx, m, t)
	r.inspect = inspect
	return m.invoke(r, abi.ExportTurn)
}

// Action runs one call of an action, as Turn runs a turn. The output of an action
// that ends well is a JSON value, or empty.
func (m *Module) Action(ctx context.Context, t turn.Turn) turn.Result {
	return m.invoke(newRun(ctx, m, t), abi.ExportAction)
}

func (m *Module) invoke(r *run, name string) turn.Result {
	if err := m.beginTurn(); err != nil {
		return turn.Result{Exit: turn.HostExit(err)}
	}
	defer m.endTurn()
	exit := r.guard(func() *turn.Exit {
		if exit := r.start(); exit != nil {
			return exit
		}
		r.beginTurn()
		r.callInspect()
		status, exit := r.callStatus(name, uint64(len(r.turn.Input)))
		r.callInspect()
		if exit != nil {
			return exit
		}
		return r.turnExit(name, status)
	})
	return r.result(exit)
}
