package binary

// opcode is an instruction: the byte itself, or prefix<<8 | second number for
// the two prefixes that are admitted. The second number fits a byte in both.
type opcode uint16

const (
	opUnreachable  opcode = 0x00
	opNop          opcode = 0x01
	opBlock        opcode = 0x02
	opLoop         opcode = 0x03
	opIf           opcode = 0x04
	opElse         opcode = 0x05
	opEnd          opcode = 0x0b
	opBr           opcode = 0x0c
	opBrIf         opcode = 0x0d
	opBrTable      opcode = 0x0e
	opReturn       opcode = 0x0f
	opCall         opcode = 0x10
	opCallIndirect opcode = 0x11
	opSelect       opcode = 0x1b
	opSelectTyped  opcode = 0x1c
	opLocalGet     opcode = 0x20
	opLocalSet     opcode = 0x21
	opLocalTee     opcode = 0x22
	opGlobalGet    opcode = 0x23
	opGlobalSet    opcode = 0x24
	opTableGet     opcode = 0x25
	opTableSet     opcode = 0x26
	opMemorySize   opcode = 0x3f
	opMemoryGrow   opcode = 0x40
	opI32Const     opcode = 0x41
	opI64Const     opcode = 0x42
	opF32Const     opcode = 0x43
	opF64Const     opcode = 0x44
	opI32Eqz       opcode = 0x45
	opI32Eq        opcode = 0x46
	opI32Ne        opcode = 0x47
	opI32GtU       opcode = 0x4b
	opI32LeU       opcode = 0x4d
	opI64GtU       opcode = 0x56
	opI64GeS       opcode = 0x59
	opI32Add       opcode = 0x6a
	opI32Sub       opcode = 0x6b
	opI32Shl       opcode = 0x74
	opI32ShrU      opcode = 0x76
	opI64Add       opcode = 0x7c
	opI64Sub       opcode = 0x7d
	opI64Or        opcode = 0x84
	opI64Shl       opcode = 0x86
	opI64ExtendU   opcode = 0xad
	opRefNull      opcode = 0xd0
	opRefIsNull    opcode = 0xd1
	opRefFunc      opcode = 0xd2

	prefixMisc   = 0xfc
	prefixVector = 0xfd

	opMemoryInit opcode = prefixMisc<<8 | 8
	opDataDrop   opcode = prefixMisc<<8 | 9
	opMemoryCopy opcode = prefixMisc<<8 | 10
	opMemoryFill opcode = prefixMisc<<8 | 11
	opTableInit  opcode = prefixMisc<<8 | 12
	opElemDrop   opcode = prefixMisc<<8 | 13
	opTableCopy  opcode = prefixMisc<<8 | 14
	opTableGrow  opcode = prefixMisc<<8 | 15
	opTableSize  opcode = prefixMisc<<8 | 16
	opTableFill  opcode = prefixMisc<<8 | 17

	opV128Const opcode = prefixVector<<8 | 0x0c
)

// imm is the form of the immediates that follow an opcode.
type imm uint8

const (
	immRefused imm = iota // the opcode is not admitted
	immNone
	immBlock      // block type
	immLabel      // label
	immLabels     // vector of labels and a default
	immFunc       // function index
	immIndirect   // type index, table index
	immLocal      // local index
	immGlobal     // global index
	immTable      // table index
	immTable2     // two table indices
	immTypes      // vector of one value type
	immRefType    // reference type
	immMem        // alignment and offset
	immMemLane    // alignment, offset, lane
	immLane       // lane
	immShuffle    // sixteen lanes
	immMemZero    // a zero byte: the one memory
	immMemZero2   // two of them
	immData       // data segment index
	immDataMem    // data segment index, zero byte
	immElem       // element segment index
	immElemTable  // element segment index, table index
	immI32        // signed 32 bits
	immI64        // signed 64 bits
	immBytes4     // f32
	immBytes8     // f64
	immBytes16    // v128
	immStructured // no immediates, but the control stack is concerned: else, end …
)

// opInfo describes an opcode. pop and push have no meaning where they depend on a
// type: control, calls, select.
type opInfo struct {
	imm       imm
	pop, push uint8
	align     uint8 // largest exponent that a memory access may state
	lanes     uint8 // lane immediates are below this
	weight    uint8 // units of fuel
}

// ops holds the admitted opcodes: plain, 0xfc and 0xfd ones, in this order.
var ops = [3][256]opInfo{plainOps(), miscOps(), vectorOps()}

func (op opcode) info() *opInfo {
	switch op >> 8 {
	case prefixMisc:
		return &ops[1][op&0xff]
	case prefixVector:
		return &ops[2][op&0xff]
	}
	return &ops[0][op]
}

// feature names the feature of a refused opcode, for the author who has to turn it
// off.
func (op opcode) feature() string {
	switch {
	case op >= 0x06 && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return " (exceptions)"
	case op == 0x12, op == 0x13:
		return " (tail calls)"
	case op == 0x14, op == 0x15, op >= 0xd3 && op <= 0xd6:
		return " (typed references)"
	case op == 0xfb:
		return " (garbage collection)"
	case op == 0xfe:
		return " (threads)"
	}
	return ""
}

type opTable [256]opInfo

// set describes the opcodes first..last; each takes one unit unless weigh changes it.
func (t *opTable) set(first, last int, i imm, pop, push uint8) {
	for op := first; op <= last; op++ {
		t[op] = opInfo{imm: i, pop: pop, push: push, weight: 1}
	}
}

// mem describes consecutive memory accesses with the given alignment exponents.
func (t *opTable) mem(first int, pop, push uint8, aligns ...uint8) {
	for i, a := range aligns {
		t[first+i] = opInfo{imm: immMem, pop: pop, push: push, align: a, weight: 1}
	}
}

func (t *opTable) weigh(weight uint8, codes ...int) {
	for _, op := range codes {
		t[op].weight = weight
	}
}

func plainOps() [256]opInfo {
	var t opTable
	t.set(0x00, 0x00, immStructured, 0, 0) // unreachable
	t.set(0x01, 0x01, immNone, 0, 0)       // nop
	t.set(0x02, 0x04, immBlock, 0, 0)      // block, loop, if
	t.set(0x05, 0x05, immStructured, 0, 0) // else
	t.set(0x0b, 0x0b, immStructured, 0, 0) // end
	t.set(0x0c, 0x0d, immLabel, 0, 0)      // br, br_if
	t.set(0x0e, 0x0e, immLabels, 0, 0)     // br_table
	t.set(0x0f, 0x0f, immStructured, 0, 0) // return
	t.set(0x10, 0x10, immFunc, 0, 0)       // call
	t.set(0x11, 0x11, immIndirect, 0, 0)   // call_indirect
	t.set(0x1a, 0x1a, immNone, 1, 0)       // drop
	t.set(0x1b, 0x1b, immNone, 3, 1)       // select
	t.set(0x1c, 0x1c, immTypes, 3, 1)      // select t
	t.set(0x20, 0x20, immLocal, 0, 1)      // local.get
	t.set(0x21, 0x21, immLocal, 1, 0)      // local.set
	t.set(0x22, 0x22, immLocal, 1, 1)      // local.tee
	t.set(0x23, 0x23, immGlobal, 0, 1)     // global.get
	t.set(0x24, 0x24, immGlobal, 1, 0)     // global.set
	t.set(0x25, 0x25, immTable, 1, 1)      // table.get
	t.set(0x26, 0x26, immTable, 2, 0)      // table.set
	t.mem(0x28, 1, 1, 2, 3, 2, 3)          // loads
	t.mem(0x2c, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2)
	t.mem(0x36, 2, 0, 2, 3, 2, 3, 0, 1, 0, 1, 2) // stores
	t.set(0x3f, 0x3f, immMemZero, 0, 1)          // memory.size
	t.set(0x40, 0x40, immMemZero, 1, 1)          // memory.grow
	t.set(0x41, 0x41, immI32, 0, 1)
	t.set(0x42, 0x42, immI64, 0, 1)
	t.set(0x43, 0x43, immBytes4, 0, 1)
	t.set(0x44, 0x44, immBytes8, 0, 1)
	t.numeric()
	t.set(0xd0, 0xd0, immRefType, 0, 1) // ref.null
	t.set(0xd1, 0xd1, immNone, 1, 1)    // ref.is_null
	t.set(0xd2, 0xd2, immFunc, 0, 1)    // ref.func
	t.weigh(0, 0x01, 0x02, 0x03, 0x05, 0x0b)
	t.weigh(4, 0x10, 0x91, 0x95, 0x9f, 0xa3)
	t.weigh(6, 0x11)
	t.weigh(8, 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82)
	t.weigh(64, 0x40, 0xd2)
	return t
}

func (t *opTable) numeric() {
	t.set(0x45, 0x45, immNone, 1, 1) // i32.eqz
	t.set(0x46, 0x4f, immNone, 2, 1) // i32 comparisons
	t.set(0x50, 0x50, immNone, 1, 1) // i64.eqz
	t.set(0x51, 0x66, immNone, 2, 1) // i64, f32, f64 comparisons
	t.set(0x67, 0x69, immNone, 1, 1) // i32 clz, ctz, popcnt
	t.set(0x6a, 0x78, immNone, 2, 1) // i32 arithmetic
	t.set(0x79, 0x7b, immNone, 1, 1) // i64 clz, ctz, popcnt
	t.set(0x7c, 0x8a, immNone, 2, 1) // i64 arithmetic
	t.set(0x8b, 0x91, immNone, 1, 1) // f32 abs … sqrt
	t.set(0x92, 0x98, immNone, 2, 1) // f32 arithmetic
	t.set(0x99, 0x9f, immNone, 1, 1) // f64 abs … sqrt
	t.set(0xa0, 0xa6, immNone, 2, 1) // f64 arithmetic
	t.set(0xa7, 0xc4, immNone, 1, 1) // conversions, sign extension
}

func miscOps() [256]opInfo {
	var t opTable
	t.set(0, 7, immNone, 1, 1) // saturating conversions
	t.set(8, 8, immDataMem, 3, 0)
	t.set(9, 9, immData, 0, 0)
	t.set(10, 10, immMemZero2, 3, 0)
	t.set(11, 11, immMemZero, 3, 0)
	t.set(12, 12, immElemTable, 3, 0)
	t.set(13, 13, immElem, 0, 0)
	t.set(14, 14, immTable2, 3, 0)
	t.set(15, 15, immTable, 2, 1)
	t.set(16, 16, immTable, 0, 1)
	t.set(17, 17, immTable, 3, 0)
	t.weigh(16, 8, 10, 11, 12, 14, 17)
	t.weigh(64, 15)
	return t
}

// vectorOps leaves the holes of the numbering refused, and with them everything
// above one byte (relaxed SIMD).
func vectorOps() [256]opInfo {
	var t opTable
	t.mem(0x00, 1, 1, 4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3)
	t.mem(0x0b, 2, 0, 4)
	t.set(0x0c, 0x0c, immBytes16, 0, 1)
	t.set(0x0d, 0x0d, immShuffle, 2, 1)
	t.set(0x0e, 0x0e, immNone, 2, 1)
	t.set(0x0f, 0x14, immNone, 1, 1)
	t.lanes()
	t.set(0x23, 0x4c, immNone, 2, 1)
	t.set(0x4d, 0x4d, immNone, 1, 1)
	t.set(0x4e, 0x51, immNone, 2, 1)
	t.set(0x52, 0x52, immNone, 3, 1)
	t.set(0x53, 0x53, immNone, 1, 1)
	t.mem(0x5c, 1, 1, 2, 3)
	unary := [][2]int{
		{0x5e, 0x64}, {0x67, 0x6a}, {0x74, 0x75}, {0x7a, 0x7a}, {0x7c, 0x81}, {0x83, 0x84},
		{0x87, 0x8a}, {0x94, 0x94}, {0xa0, 0xa1}, {0xa3, 0xa4}, {0xa7, 0xaa}, {0xc0, 0xc1},
		{0xc3, 0xc4}, {0xc7, 0xca}, {0xe0, 0xe1}, {0xe3, 0xe3}, {0xec, 0xed}, {0xef, 0xef},
		{0xf8, 0xff},
	}
	for _, u := range unary {
		t.set(u[0], u[1], immNone, 1, 1)
	}
	binary := [][2]int{
		{0x65, 0x66}, {0x6b, 0x73}, {0x76, 0x79}, {0x7b, 0x7b}, {0x82, 0x82}, {0x85, 0x86},
		{0x8b, 0x93}, {0x95, 0x99}, {0x9b, 0x9f}, {0xab, 0xae}, {0xb1, 0xb1}, {0xb5, 0xba},
		{0xbc, 0xbf}, {0xcb, 0xce}, {0xd1, 0xd1}, {0xd5, 0xdf}, {0xe4, 0xeb}, {0xf0, 0xf7},
	}
	for _, b := range binary {
		t.set(b[0], b[1], immNone, 2, 1)
	}
	t.weigh(8, 0xe3, 0xe7, 0xef, 0xf3)
	return t
}

func (t *opTable) lanes() {
	for i, n := range []uint8{16, 16, 16, 8, 8, 8, 4, 4, 2, 2, 4, 4, 2, 2} {
		pop := uint8(1)
		if i == 2 || i == 5 || i > 5 && i%2 == 1 {
			pop = 2 // replace_lane
		}
		t[0x15+i] = opInfo{imm: immLane, pop: pop, push: 1, lanes: n, weight: 1}
	}
	for i := range uint8(4) {
		t[0x54+i] = opInfo{imm: immMemLane, pop: 2, push: 1, align: i, lanes: 16 >> i, weight: 1}
		t[0x58+i] = opInfo{imm: immMemLane, pop: 2, push: 0, align: i, lanes: 16 >> i, weight: 1}
	}
}
