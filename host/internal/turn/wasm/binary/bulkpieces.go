package binary

// Locals of a helper that works in pieces: the three operands of its instruction
// and the length of the piece.
const (
	locTo = iota
	locFrom
	locLen
	locPiece
	locUnits
)

// piecesBody builds the helper of a fill, copy or init instruction.
func (h *helpers) piecesBody(key helperKey) buf {
	p := h.newPieceOp(key)
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

// pieceOp describes one of the fill, copy and init instructions.
type pieceOp struct {
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

func (h *helpers) newPieceOp(key helperKey) *pieceOp {
	p := &pieceOp{h: h, piece: pieceBytes, shift: shiftBytes, advancing: true}
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

func (p *pieceOp) elements() { p.piece, p.shift = pieceElements, shiftElements }

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

// charge charges for the number of bytes or elements in a local.
func (p *pieceOp) charge(w *buf, local uint32) {
	w.get(local)
	w.set(locUnits)
	shiftRight(w, locUnits, p.shift)
	p.h.chargeLocal(w, locUnits)
}

func (p *pieceOp) once(w *buf) {
	w.get(locTo)
	w.get(locFrom)
	w.get(locLen)
	p.op(w)
}

// small is the usual case: at most one piece.
func (p *pieceOp) small(w *buf) {
	w.get(locLen)
	w.i32(p.piece)
	w.op(opI32LeU)
	w.ifThen()
	p.charge(w, locLen)
	p.once(w)
	w.op(opReturn, opEnd)
}

// outOfBounds lets the instruction trap before a piece of it has been done. The
// size of a segment is its size in the binary: a dropped segment is empty, and traps
// at its first piece.
func (p *pieceOp) outOfBounds(w *buf) {
	for i, size := range p.sizes {
		w.get(uint32(i))
		w.op(opI64ExtendU)
		w.get(locLen)
		w.op(opI64ExtendU, opI64Add)
		size(w)
		w.op(opI64GtU)
		w.ifThen()
		p.once(w)
		w.op(opUnreachable, opEnd)
	}
}

// forward works upwards. It is wrong only for a copy to a higher address.
func (p *pieceOp) forward(w *buf) {
	w.byte(byte(opLoop), emptyBlock)
	setMin(w, locPiece, locLen, p.piece)
	p.charge(w, locPiece)
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

// backward copies to a higher address: from the last piece to the first, so that no
// piece is overwritten before it was read.
func (p *pieceOp) backward(w *buf) {
	w.get(locTo)
	w.get(locFrom)
	w.op(opI32GtU)
	w.ifThen()
	w.byte(byte(opLoop), emptyBlock)
	setMin(w, locPiece, locLen, p.piece)
	p.charge(w, locPiece)
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
