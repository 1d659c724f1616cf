package binary

// instr is one decoded instruction. x and y are its immediates in binary order;
// where the binary has a table and a segment, x is the segment.
type instr struct {
	off  int // first byte
	op   opcode
	info *opInfo
	x, y uint32
	bt   blockType
	list int // br_table: offset of the first of x+1 labels
}

// blockType is the form that follows block, loop and if.
type blockType struct {
	index  int64   // of a type, or -1
	result ValType // single result where index is -1, or 0
}

// next decodes the instruction at the reader into in, and checks its immediates as far
// as they need no context.
func (r *reader) next(in *instr) {
	in.off = r.pos
	in.op = r.opcode()
	in.info = in.op.info()
	switch in.info.imm {
	case immNone, immStructured:
	case immLabel, immFunc, immLocal, immGlobal, immTable, immData, immElem:
		in.x = r.u32()
	case immI32:
		r.s32()
	case immMem:
		r.memarg(in)
	case immBlock:
		in.bt = r.blockType()
	case immRefused:
		r.fail(in.off, "opcode %#02x%s is not admitted", in.op, in.op.feature())
	default:
		r.rareImmediates(in)
	}
}

func (r *reader) rareImmediates(in *instr) {
	switch in.info.imm {
	case immI64:
		r.s64()
	case immBytes4:
		r.skip(4)
	case immBytes8:
		r.skip(8)
	case immBytes16:
		r.skip(16)
	case immIndirect, immTable2, immElemTable:
		in.x = r.u32()
		in.y = r.u32()
	case immLabels:
		in.x = r.count("labels", 1)
		in.list = r.pos
	case immTypes:
		r.selectType(in)
	case immRefType:
		in.x = uint32(r.refType())
	case immMemLane:
		r.memarg(in)
		r.lane(in)
	case immLane:
		r.lane(in)
	case immShuffle:
		r.shuffle()
	case immMemZero:
		r.zero()
	case immMemZero2:
		r.zero()
		r.zero()
	case immDataMem:
		in.x = r.u32()
		r.zero()
	}
}

func (r *reader) opcode() opcode {
	b := r.byte()
	if b != prefixMisc && b != prefixVector {
		return opcode(b)
	}
	off := r.pos - 1
	n := r.u32()
	if n > 0xff {
		r.fail(off, "opcode %#02x %d (of a later version) is not admitted", b, n)
		return opUnreachable
	}
	return opcode(b)<<8 | opcode(n)
}

// memarg refuses alignments above the natural one, and with them the flag bit by
// which later versions name another memory.
func (r *reader) memarg(in *instr) {
	off := r.pos
	if align := r.u32(); align > uint32(in.info.align) {
		r.fail(off, "alignment 2^%d is larger than the access", align)
	}
	in.x = r.u32()
}

func (r *reader) blockType() blockType {
	off := r.pos
	switch v := r.s33(); {
	case v >= 0:
		return blockType{index: v}
	case v == -64:
		return blockType{index: -1}
	case v < -64 || !ValType(v&0x7f).valid():
		r.fail(off, "block type is not admitted")
		return blockType{index: -1}
	default:
		return blockType{index: -1, result: ValType(v & 0x7f)}
	}
}

func (r *reader) selectType(in *instr) {
	off := r.pos
	if n := r.count("select types", 1); n != 1 && r.err == nil {
		r.fail(off, "select with %d types", n)
	}
	in.x = uint32(r.valType())
}

func (r *reader) lane(in *instr) {
	off := r.pos
	if n := r.byte(); n >= in.info.lanes {
		r.fail(off, "lane %d of %d", n, in.info.lanes)
	}
}

func (r *reader) shuffle() {
	off := r.pos
	for _, n := range r.bytes(16) {
		if n >= 32 {
			r.fail(off, "lane %d of 32", n)
		}
	}
}

func (r *reader) zero() {
	off := r.pos
	if r.byte() != 0 {
		r.fail(off, "zero byte expected: there is one memory")
	}
}
