package wasm

import (
	"context"
	"skep/host/internal/turn"
	"slices"
)

// callInspect calls inspect, where it is set, with the current memory and mutable
// globals of the instance.
func (r *run) callInspect() {
	if r.inspect == nil {
		return
	}
	globals := make([]uint64, len(r.inst.globals))
	for n, g := range r.inst.globals {
		globals[n] = g.Get()
	}
	r.inspect(r.inst.linear.space.all[:r.memory.Size()], globals)
}

// Describe runs skep_describe without any grant and returns what it writes, also
// where the descriptor was read from the module's section.
func (m *Module) Describe(ctx context.Context) ([]byte, *turn.Exit) {
	if err := m.engine.beginUse(); err != nil {
		return nil, turn.HostExit(err)
	}
	defer m.engine.running.Done()
	raw, exit := m.runDescribe(ctx)
	return slices.Clone(raw), exit
}
