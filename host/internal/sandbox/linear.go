package sandbox

import "github.com/tetratelabs/wazero/experimental"

const page = 64 << 10

// linear is the linear memory of one instance: address space for all it may
// ever have, of which it gets what it asks for. Growing copies nothing and moves
// nothing.
type linear struct {
	space space
}

// Allocate reserves the memory of the run's instance. The run owns it.
func (r *run) Allocate(_, most uint64) experimental.LinearMemory {
	limit := uint64(r.limits.Memory) / page * page
	r.linear = &linear{space: reserve(min(most, limit))}
	return r.linear
}

// Reallocate grows the memory, or returns nil beyond the limit: memory.grow then
// answers -1.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.space.size() {
		return nil
	}
	return l.space.commit(size)
}

// Free gives everything back. Only the first call counts.
func (l *linear) Free() { l.space.free() }
