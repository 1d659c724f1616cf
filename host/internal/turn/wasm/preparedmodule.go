package wasm

import (
	"strconv"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// preparedModule is what the steps before compiling leave of a module. It stands for the
// whole binary from then on, so that a cache can keep it.
type preparedModule struct {
	Metered []byte
	Data    []binary.Segment // active ones
	// HiddenState is why instances cannot be reset; empty: they can.
	HiddenState string
	// MinMemory and MaxMemory bound the linear memory, in bytes; Overhead estimates what an
	// instance takes besides it.
	MinMemory, MaxMemory, Overhead int64
	MutableGlobals                 int
	// Descriptors are the custom sections with one.
	Descriptors [][]byte
	// IsProgram is set for a module that is run from its start to its end.
	IsProgram bool
}

// Estimates of what the engine allocates for an instance.
const (
	instanceBytes = 16 << 10
	globalBytes   = 64
	elementBytes  = 24 // in a table, with what stands for its function
)

// prepareModule admits a module, holds it against the contract, and meters it.
func prepareModule(wasm []byte, caps binary.Caps) (*preparedModule, error) {
	admitted, err := binary.Admit(wasm, caps)
	if err != nil {
		return nil, newLoadError(turn.StepAdmit, err)
	}
	if err := checkContract(admitted); err != nil {
		return nil, newLoadError(turn.StepABI, err)
	}
	detached, err := admitted.MeterDetached(binary.Options{})
	if err != nil {
		return nil, newLoadError(turn.StepMeter, err)
	}
	p := &preparedModule{Metered: detached.Wasm, Data: detached.Data, HiddenState: detached.HiddenState,
		MutableGlobals: len(admitted.MutableGlobals()), Descriptors: admitted.Custom(abi.DescriptorSection), IsProgram: isProgram(admitted)}
	for _, mem := range admitted.Memories { // there is one
		p.MinMemory = int64(mem.Min) * page
		p.MaxMemory = 1 << 32
		if mem.HasMax {
			p.MaxMemory = int64(mem.Max) * page
		}
	}
	p.Overhead = instanceBytes + globalBytes*int64(len(admitted.Globals))
	for _, t := range admitted.Tables {
		p.Overhead += elementBytes * int64(t.Min)
	}
	return p, nil
}

// newModule returns a module without its code and descriptor.
func newModule(e *Engine, digest string, p *preparedModule) *Module {
	m := &Module{engine: e, use: &moduleUse{}, digest: digest, seed: e.imageSeed(digest), data: p.Data, noImageReason: p.HiddenState,
		minMemory: p.MinMemory, maxMemory: p.MaxMemory, overhead: p.Overhead}
	for i := range p.MutableGlobals {
		m.globals = append(m.globals, binary.GlobalPrefix+strconv.Itoa(i))
	}
	return m
}
