package wasmbin

import "math/bits"

// few is the number of locals that sets tells apart.
const few = 256

// sets remembers which locals occurred in a piece of code. Of a function with
// more than a few, it takes each occurrence for another local.
type sets struct {
	touches, assigns, copies bag
}

// bag is a set of locals and the number of times something was put in.
type bag struct {
	bits [few / 64]uint64
	n    uint64
}

func (b *bag) put(local uint32) {
	b.bits[local/64%uint32(len(b.bits))] |= 1 << (local % 64)
	b.n++
}

func (b *bag) drop(local uint32) { b.bits[local/64%uint32(len(b.bits))] &^= 1 << (local % 64) }

func (b *bag) has(local uint32) bool { return b.bits[local/64%uint32(len(b.bits))]>>(local%64)&1 == 1 }

func (b *bag) join(o *bag) {
	for i, w := range o.bits {
		b.bits[i] |= w
	}
	b.n += o.n
}

// size is how many of a function's locals are in b, or more.
func (b *bag) size(locals uint64) uint64 {
	if locals > few {
		return min(b.n, locals)
	}
	n := 0
	for _, w := range b.bits {
		n += bits.OnesCount64(w)
	}
	return uint64(n)
}

func (s *sets) join(o *sets) {
	s.touches.join(&o.touches)
	s.assigns.join(&o.assigns)
	s.copies.join(&o.copies)
}
