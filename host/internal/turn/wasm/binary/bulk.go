package binary

// Bulk instructions move any number of bytes in one step that nothing can
// interrupt. They become calls of helpers, which charge by length and work in pieces. An
// instruction that is out of bounds is executed whole: it traps and has written
// nothing, as the specification demands.
const (
	pieceBytes    = 64 << 10
	pieceElements = 4096

	// Units by length: a sixteenth of the bytes, an element being eight bytes.
	shiftBytes    = 4
	shiftElements = 1
	shiftPages    = 16 - shiftBytes
)

// helperKey is a bulk instruction with its immediates; one helper serves all
// places where it stands.
type helperKey struct {
	op   opcode
	x, y uint32
}

// bulk reports whether a helper replaces op.
func (op opcode) bulk() bool {
	switch op {
	case opMemoryGrow, opMemoryInit, opMemoryCopy, opMemoryFill,
		opTableInit, opTableCopy, opTableGrow, opTableFill:
		return true
	}
	return false
}

// Keys of helpers that are no instructions.
const (
	helperGuard       opcode = 0xff00 + iota // entry of a function: stack or slice below zero
	helperCharge                             // (units): charges any number of units
	helperChargeFirst                        // (n) -> n: charges for n bytes or elements
)

type helper struct {
	typ  uint32
	body buf
}

// helpers makes the functions that are appended to the module, in the order of
// their first use.
type helpers struct {
	m     *Module
	types *typeTable
	emit  *emitter
	first uint32 // function index of the first helper
	index map[helperKey]uint32
	list  []helper
}

// replace returns the helper for a bulk instruction. A segment that is itself no
// longer than a piece needs no pieces: its instruction stays, after a charge.
func (h *helpers) replace(in *instr) (eventKind, uint32) {
	switch in.op {
	case opMemoryInit:
		if h.m.datas[in.x] <= pieceBytes {
			return evPaid, h.function(helperKey{helperChargeFirst, pieceBytes, shiftBytes})
		}
	case opTableInit:
		if h.m.elemLens[in.x] <= pieceElements {
			return evPaid, h.function(helperKey{helperChargeFirst, pieceElements, shiftElements})
		}
	}
	key := helperKey{op: in.op}
	switch in.info.imm {
	case immTable, immDataMem:
		key.x = in.x
	case immTable2, immElemTable:
		key.x, key.y = in.x, in.y
	}
	return evHelper, h.function(key)
}

func (h *helpers) function(key helperKey) uint32 {
	if i, ok := h.index[key]; ok {
		return i
	}
	f := h.build(key) // may add a helper of its own first
	i := h.first + uint32(len(h.list))
	h.index[key] = i
	h.list = append(h.list, f)
	return i
}

var (
	oneInt    = []ValType{I32}
	threeInts = []ValType{I32, I32, I32}
)

func (h *helpers) build(key helperKey) helper {
	switch key.op {
	case helperGuard:
		return helper{h.types.indexOf(nil, nil), h.guardBody()}
	case helperCharge:
		return helper{h.types.indexOf(oneInt, nil), h.chargeBody()}
	case helperChargeFirst:
		return helper{h.types.indexOf(oneInt, oneInt), h.chargeFirstBody(key)}
	case opMemoryGrow:
		return helper{h.types.indexOf(oneInt, oneInt), h.growBody(key, 1, shiftPages)}
	case opTableGrow:
		elem := h.m.tables[key.x].Elem
		return helper{h.types.indexOf([]ValType{elem, I32}, oneInt), h.growBody(key, 2, -shiftElements)}
	case opTableFill:
		elem := h.m.tables[key.x].Elem
		return helper{h.types.indexOf([]ValType{I32, elem, I32}, nil), h.piecesBody(key)}
	}
	return helper{h.types.indexOf(threeInts, nil), h.piecesBody(key)}
}

// guardBody is the slow path of a function entry. overflow does not return; should it,
// the guest must not go on.
func (h *helpers) guardBody() buf {
	w := buf{0}
	w.with(opGlobalGet, h.emit.stack)
	w.unlessBelowZero()
	w.with(opCall, h.emit.overflow)
	w.op(opUnreachable, opEnd)
	h.emit.tickIfNegative(&w)
	w.op(opEnd)
	return w
}

// chargeLocal charges the units in a local, at most MaxCharge.
func (h *helpers) chargeLocal(w *buf, local uint32) {
	w.with(opGlobalGet, h.emit.slice)
	w.get(local)
	w.op(opI64ExtendU, opI64Sub)
	w.with(opGlobalSet, h.emit.slice)
	h.emit.tickIfNegative(w)
}

// setMin sets a local to the smaller of another one and a constant.
func setMin(w *buf, to, from uint32, bound int32) {
	w.get(from)
	w.i32(bound)
	w.get(from)
	w.i32(bound)
	w.op(opI32LeU, opSelect)
	w.set(to)
}

func (h *helpers) chargeBody() buf {
	const left, now = 0, 1
	w := buf{1, 1, byte(I32)}
	w.byte(byte(opLoop), emptyBlock)
	setMin(&w, now, left, MaxCharge)
	h.chargeLocal(&w, now)
	w.get(left)
	w.get(now)
	w.op(opI32Sub)
	w.with(opLocalTee, left)
	w.with(opBrIf, 0)
	w.op(opEnd, opEnd)
	return w
}

func (h *helpers) chargeFirstBody(key helperKey) buf {
	const n, units = 0, 1
	w := buf{1, 1, byte(I32)}
	setMin(&w, units, n, int32(key.x))
	shiftRight(&w, units, key.y)
	h.chargeLocal(&w, units)
	w.get(n)
	w.op(opEnd)
	return w
}

func shiftRight(w *buf, local uint32, shift uint32) {
	w.get(local)
	w.i32(int32(shift))
	w.op(opI32ShrU)
	w.set(local)
}

// growBody executes memory.grow or table.grow and charges for the growth if it
// succeeded: a refusal costs nothing. The
// amount, its last operand, is shifted left, or right where shift is negative.
func (h *helpers) growBody(key helperKey, operands uint32, shift int32) buf {
	pay := h.function(helperKey{op: helperCharge})
	result := operands
	w := buf{1, 1, byte(I32)}
	for i := range operands {
		w.get(i)
	}
	w.with(key.op, key.x) // the zero byte of memory.grow, the table of table.grow
	w.with(opLocalTee, result)
	w.i32(-1)
	w.op(opI32Ne)
	w.ifThen()
	w.get(operands - 1)
	if shift < 0 {
		w.i32(-shift)
		w.op(opI32ShrU)
	} else {
		w.i32(shift)
		w.op(opI32Shl)
	}
	w.with(opCall, pay)
	w.op(opEnd)
	w.get(result)
	w.op(opEnd)
	return w
}
