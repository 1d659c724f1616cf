package wasm

import "sync/atomic"

const page = 64 << 10

// linearMemory is the linear memory of one instance: address space up to its limit,
// of which a growing part is backed by memory. Growing copies and moves nothing.
type linearMemory struct {
	space       space
	overhead    int64         // bytes that the instance takes besides its memory
	resident    *atomic.Int64 // bytes that all instances of the engine may take
	counted     int64         // this one's part of it
	growRefused bool          // a grow was refused for the turn's own limit
}

// newLinearMemory reserves most bytes. Where the system refuses, the memory is empty
// and never grows.
func newLinearMemory(most, overhead int64, gauge *atomic.Int64) *linearMemory {
	l := &linearMemory{space: reserve(uint64(most)), overhead: overhead, resident: gauge}
	l.setCounted(0)
	return l
}

// Reallocate grows the memory, or returns nil beyond the limit: memory.grow then
// answers -1.
func (l *linearMemory) Reallocate(size uint64) []byte {
	if size > l.space.size() {
		l.growRefused = true
		return nil
	}
	b := l.space.commit(size)
	if b != nil {
		l.setCounted(int64(size))
	}
	return b
}

// setCounted sets the bytes with which the memory is counted.
func (l *linearMemory) setCounted(bytes int64) {
	bytes += l.overhead
	l.resident.Add(bytes - l.counted)
	l.counted = bytes
}

// uncount ends the count of the memory before it is freed.
func (l *linearMemory) uncount() {
	l.resident.Add(-l.counted)
	l.counted = 0
}

// Free frees the memory. Later calls do nothing.
func (l *linearMemory) Free() {
	l.uncount()
	l.space.free()
}
