package sandbox

import "sync/atomic"

const page = 64 << 10

// linear is the linear memory of one instance: address space for all it may
// ever have, of which it gets what it asks for. Growing copies nothing and moves
// nothing.
type linear struct {
	space    space
	overhead int64         // bytes that the instance takes besides
	gauge    *atomic.Int64 // bytes that all instances of the engine may take
	counted  int64         // this one's part of it
	refused  bool          // a grow was, for the turn's own limit
}

// newLinear reserves most bytes. Where the system refuses, the memory is empty
// and never grows.
func newLinear(most, overhead int64, gauge *atomic.Int64) *linear {
	l := &linear{space: reserve(uint64(most)), overhead: overhead, gauge: gauge}
	l.count(0)
	return l
}

// Reallocate grows the memory, or returns nil beyond the limit: memory.grow then
// answers -1.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.space.size() {
		l.refused = true
		return nil
	}
	b := l.space.commit(size)
	if b != nil {
		l.count(int64(size))
	}
	return b
}

// count sets what the memory is counted with.
func (l *linear) count(bytes int64) {
	bytes += l.overhead
	l.gauge.Add(bytes - l.counted)
	l.counted = bytes
}

// Free gives everything back. Only the first call counts.
func (l *linear) Free() {
	l.gauge.Add(-l.counted)
	l.counted = 0
	l.space.free()
}
