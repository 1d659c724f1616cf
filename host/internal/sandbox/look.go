package sandbox

import (
	"context"
	"slices"
)

// show shows an instance to who wants to see it: its memory and its mutable
// globals, as they are now.
func (r *run) show() {
	if r.turn.Look == nil {
		return
	}
	globals := make([]uint64, len(r.inst.globals))
	for n, g := range r.inst.globals {
		globals[n] = g.Get()
	}
	r.turn.Look(r.inst.linear.space.all[:r.memory.Size()], globals)
}

// Describe runs skep_describe without any grant and returns what it writes, also
// where the descriptor was read from the module's section.
func (m *Module) Describe(ctx context.Context) ([]byte, *Exit) {
	if err := m.engine.enter(); err != nil {
		return nil, hostExit(err)
	}
	defer m.engine.running.Done()
	raw, exit := m.runDescribe(ctx)
	return slices.Clone(raw), exit
}
