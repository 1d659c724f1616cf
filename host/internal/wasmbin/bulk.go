package wasmbin

// Bulk instructions move any number of bytes in one step that nothing can
// interrupt. They become calls of helpers, which take units by length and work in
// pieces. An instruction that is out of bounds is executed whole: it traps and
// has written nothing, as it must.
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

// bulk reports whether op is replaced.
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
	helperGuard  opcode = 0xff00 + iota // entry of a function: stack or slice below zero
	helperPay                           // (units): takes any number of units
	helperPrepay                        // (n) -> n: takes the units of n bytes or elements
)

type helper struct {
	typ  uint32
	body buf
}

// helpers makes the functions that are appended to the module, in the order of
// their first use.
type helpers struct {
	m     *Module
	types *types
	emit  *emitter
	first uint32 // function index of the first helper
	index map[helperKey]uint32
	list  []helper
}

// replace returns the helper for a bulk instruction. A segment that is itself no
// longer than a piece needs no pieces: its instruction stays and is paid before.
func (h *helpers) replace(in *instr) (eventKind, uint32) {
	switch in.op {
	case opMemoryInit:
		if h.m.datas[in.x] <= pieceBytes {
			return evPaid, h.function(helperKey{helperPrepay, pieceBytes, shiftBytes})
		}
	case opTableInit:
		if h.m.elemLens[in.x] <= pieceElements {
			return evPaid, h.function(helperKey{helperPrepay, pieceElements, shiftElements})
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
		return helper{h.types.of(nil, nil), h.guard()}
	case helperPay:
		return helper{h.types.of(oneInt, nil), h.pay()}
	case helperPrepay:
		return helper{h.types.of(oneInt, oneInt), h.prepay(key)}
	case opMemoryGrow:
		return helper{h.types.of(oneInt, oneInt), h.grow(key, 1, shiftPages)}
	case opTableGrow:
		elem := h.m.tables[key.x].Elem
		return helper{h.types.of([]ValType{elem, I32}, oneInt), h.grow(key, 2, -shiftElements)}
	case opTableFill:
		elem := h.m.tables[key.x].Elem
		return helper{h.types.of([]ValType{I32, elem, I32}, nil), h.inPieces(key)}
	}
	return helper{h.types.of(threeInts, nil), h.inPieces(key)}
}

// guard is the slow way of a function entry. overflow does not return; should it,
// the guest must not go on.
func (h *helpers) guard() buf {
	w := buf{0}
	w.with(opGlobalGet, h.emit.stack)
	w.unlessBelowZero()
	w.with(opCall, h.emit.overflow)
	w.op(opUnreachable, opEnd)
	h.emit.tickIfNegative(&w)
	w.op(opEnd)
	return w
}

// takeLocal takes the units in a local, which must not be more than MaxCharge.
func (h *helpers) takeLocal(w *buf, local uint32) {
	w.with(opGlobalGet, h.emit.slice)
	w.get(local)
	w.op(opI64ExtendU, opI64Sub)
	w.with(opGlobalSet, h.emit.slice)
	h.emit.tickIfNegative(w)
}

// lesser sets a local to the smaller of another one and a constant.
func lesser(w *buf, to, from uint32, bound int32) {
	w.get(from)
	w.i32(bound)
	w.get(from)
	w.i32(bound)
	w.op(opI32LeU, opSelect)
	w.set(to)
}

func (h *helpers) pay() buf {
	const left, now = 0, 1
	w := buf{1, 1, byte(I32)}
	w.byte(byte(opLoop), emptyBlock)
	lesser(&w, now, left, MaxCharge)
	h.takeLocal(&w, now)
	w.get(left)
	w.get(now)
	w.op(opI32Sub)
	w.with(opLocalTee, left)
	w.with(opBrIf, 0)
	w.op(opEnd, opEnd)
	return w
}

func (h *helpers) prepay(key helperKey) buf {
	const n, units = 0, 1
	w := buf{1, 1, byte(I32)}
	lesser(&w, units, n, int32(key.x))
	shifted(&w, units, key.y)
	h.takeLocal(&w, units)
	w.get(n)
	w.op(opEnd)
	return w
}

func shifted(w *buf, local uint32, shift uint32) {
	w.get(local)
	w.i32(int32(shift))
	w.op(opI32ShrU)
	w.set(local)
}

// grow executes memory.grow or table.grow and pays for what was added, if it was:
// a guest may ask for more than there is and pays nothing for the refusal. The
// amount, its last operand, is shifted left, or right where shift is negative.
func (h *helpers) grow(key helperKey, operands uint32, shift int32) buf {
	pay := h.function(helperKey{op: helperPay})
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
