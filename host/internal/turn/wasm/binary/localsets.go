package binary

import "math/bits"

// maxTracked is the number of locals that a localSet distinguishes.
const maxTracked = 256

// localSets are the locals that occur in a piece of code. In a function with more
// than maxTracked locals, each occurrence counts as another local.
type localSets struct {
	touches, assigns, copies localSet
}

// localSet is a set of locals and the number of times one was put in.
type localSet struct {
	bits [maxTracked / 64]uint64
	n    uint64
}

func (b *localSet) put(local uint32) {
	b.bits[local/64%uint32(len(b.bits))] |= 1 << (local % 64)
	b.n++
}

func (b *localSet) drop(local uint32) { b.bits[local/64%uint32(len(b.bits))] &^= 1 << (local % 64) }

func (b *localSet) has(local uint32) bool {
	return b.bits[local/64%uint32(len(b.bits))]>>(local%64)&1 == 1
}

func (b *localSet) join(o *localSet) {
	for i, w := range o.bits {
		b.bits[i] |= w
	}
	b.n += o.n
}

// size is an upper bound of the number of a function's locals in b.
func (b *localSet) size(locals uint64) uint64 {
	if locals > maxTracked {
		return min(b.n, locals)
	}
	n := 0
	for _, w := range b.bits {
		n += bits.OnesCount64(w)
	}
	return uint64(n)
}

func (s *localSets) join(o *localSets) {
	s.touches.join(&o.touches)
	s.assigns.join(&o.assigns)
	s.copies.join(&o.copies)
}
