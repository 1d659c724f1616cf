package wasmbin

// Locals of a helper that works in pieces: the three operands of its instruction
// and the length of the piece.
const (
	locTo = iota
	locFrom
	locLen
	locPiece
	locUnits
)

// inPieces builds the helper of a fill, copy or init instruction.
func (h *helpers) inPieces(key helperKey) buf {
	p := h.pieces(key)
	w := buf{1, 2, byte(I32)}
	p.small(&w)
	p.outOfBounds(&w)
	if p.overlaps {
		p.backward(&w)
	}
	p.forward(&w)
	w.op(opEnd)
	return w
}

// pieces is what the fill, copy and init instructions differ in.
type pieces struct {
	h         *helpers
	piece     int32
	shift     uint32
	op        func(w *buf) // the instruction itself
	sizes     []sizeOf     // of what locTo and locFrom index; fills have only the first
	overlaps  bool         // source and target may be the same
	advancing bool         // locFrom moves along
}

// sizeOf writes code that leaves a size as i64.
type sizeOf func(w *buf)

func (h *helpers) pieces(key helperKey) *pieces {
	p := &pieces{h: h, piece: pieceBytes, shift: shiftBytes, advancing: true}
	x, y := key.x, key.y
	switch key.op {
	case opMemoryFill:
		p.op = func(w *buf) { w.with(key.op, 0) }
		p.sizes = []sizeOf{memorySize}
		p.advancing = false
	case opMemoryCopy:
		p.op = func(w *buf) { w.with(key.op, 0, 0) }
		p.sizes = []sizeOf{memorySize, memorySize}
		p.overlaps = true
	case opMemoryInit:
		p.op = func(w *buf) { w.with(key.op, x, 0) }
		p.sizes = []sizeOf{memorySize, fixedSize(h.m.datas[x])}
	case opTableFill:
		p.elements()
		p.op = func(w *buf) { w.with(key.op, x) }
		p.sizes = []sizeOf{tableSize(x)}
		p.advancing = false
	case opTableCopy:
		p.elements()
		p.op = func(w *buf) { w.with(key.op, x, y) }
		p.sizes = []sizeOf{tableSize(x), tableSize(y)}
		p.overlaps = true
	case opTableInit:
		p.elements()
		p.op = func(w *buf) { w.with(key.op, x, y) }
		p.sizes = []sizeOf{tableSize(y), fixedSize(h.m.elemLens[x])}
	}
	return p
}

func (p *pieces) elements() { p.piece, p.shift = pieceElements, shiftElements }

func memorySize(w *buf) {
	w.with(opMemorySize, 0)
	w.op(opI64ExtendU)
	w.i64(16)
	w.op(opI64Shl)
}

func tableSize(table uint32) sizeOf {
	return func(w *buf) {
		w.with(opTableSize, table)
		w.op(opI64ExtendU)
	}
}

func fixedSize(n uint32) sizeOf {
	return func(w *buf) { w.i64(int64(n)) }
}

// take pays for as many bytes or elements as a local says.
func (p *pieces) take(w *buf, local uint32) {
	w.get(local)
	w.set(locUnits)
	shifted(w, locUnits, p.shift)
	p.h.takeLocal(w, locUnits)
}

func (p *pieces) whole(w *buf) {
	w.get(locTo)
	w.get(locFrom)
	w.get(locLen)
	p.op(w)
}

// small is the usual case: no longer than a piece.
func (p *pieces) small(w *buf) {
	w.get(locLen)
	w.i32(p.piece)
	w.op(opI32LeU)
	w.ifThen()
	p.take(w, locLen)
	p.whole(w)
	w.op(opReturn, opEnd)
}

// outOfBounds lets the instruction trap before a piece of it has been done. The
// size of a segment is that of the binary: one that was dropped is empty, and
// traps at its first piece.
func (p *pieces) outOfBounds(w *buf) {
	for i, size := range p.sizes {
		w.get(uint32(i))
		w.op(opI64ExtendU)
		w.get(locLen)
		w.op(opI64ExtendU, opI64Add)
		size(w)
		w.op(opI64GtU)
		w.ifThen()
		p.whole(w)
		w.op(opUnreachable, opEnd)
	}
}

// forward works upwards and is right for everything but a copy to a higher place.
func (p *pieces) forward(w *buf) {
	w.byte(byte(opLoop), emptyBlock)
	lesser(w, locPiece, locLen, p.piece)
	p.take(w, locPiece)
	w.get(locTo)
	w.get(locFrom)
	w.get(locPiece)
	p.op(w)
	advance(w, locTo)
	if p.advancing {
		advance(w, locFrom)
	}
	w.get(locLen)
	w.get(locPiece)
	w.op(opI32Sub)
	w.with(opLocalTee, locLen)
	w.with(opBrIf, 0)
	w.op(opEnd)
}

func advance(w *buf, local uint32) {
	w.get(local)
	w.get(locPiece)
	w.op(opI32Add)
	w.set(local)
}

// backward copies to a higher place: from the last piece to the first, so that no
// piece is overwritten before it was read.
func (p *pieces) backward(w *buf) {
	w.get(locTo)
	w.get(locFrom)
	w.op(opI32GtU)
	w.ifThen()
	w.byte(byte(opLoop), emptyBlock)
	lesser(w, locPiece, locLen, p.piece)
	p.take(w, locPiece)
	w.get(locLen)
	w.get(locPiece)
	w.op(opI32Sub)
	w.set(locLen)
	for _, local := range []uint32{locTo, locFrom} {
		w.get(local)
		w.get(locLen)
		w.op(opI32Add)
	}
	w.get(locPiece)
	p.op(w)
	w.get(locLen)
	w.with(opBrIf, 0)
	w.op(opEnd, opReturn, opEnd)
}
