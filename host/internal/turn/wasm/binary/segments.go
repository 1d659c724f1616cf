package binary

// constExpr checks an initialiser: one constant of type want, then end. Longer
// ones are not admitted, so it always ends and never traps.
func (p *parser) constExpr(want ValType) {
	off := p.pos
	got := p.constant()
	if end := p.byte(); end != byte(opEnd) {
		p.fail(off, "initialiser is not one constant")
	}
	if got != want {
		p.fail(off, "initialiser is %s, %s wanted", got, want)
	}
}

func (p *parser) constant() ValType {
	var in instr
	p.next(&in)
	switch in.op {
	case opI32Const:
		return I32
	case opI64Const:
		return I64
	case opF32Const:
		return F32
	case opF64Const:
		return F64
	case opV128Const:
		return V128
	case opRefNull:
		return ValType(in.x)
	case opRefFunc:
		p.funcIndex(in.x, in.off)
		return FuncRef
	case opGlobalGet:
		if uint64(in.x) >= uint64(p.m.imported.globals) || p.m.Globals[in.x].Mutable {
			p.fail(in.off, "initialiser reads global %d, which is not imported and constant", in.x)
			return 0
		}
		return p.m.Globals[in.x].Type
	}
	p.fail(in.off, "opcode %#02x is not admitted in an initialiser", in.op)
	return 0
}

func (p *parser) funcIndex(i uint32, off int) {
	if uint64(i) >= uint64(len(p.m.funcs)) {
		p.fail(off, "function %d of %d", i, len(p.m.funcs))
	}
}

func (p *parser) elementSection() {
	off := p.pos
	n := p.count("element segments", 2)
	p.cap("element_segments", uint64(n), p.caps.ElementSegments, "", off)
	if p.err != nil {
		return
	}
	p.m.elems = make([]ValType, 0, n)
	p.m.elemLens = make([]uint32, 0, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		t, count := p.elementSegment()
		p.m.elems = append(p.m.elems, t)
		p.m.elemLens = append(p.m.elemLens, count)
	}
}

// Bits of the flags of an element segment.
const (
	elemPassive  = 1 // or, with elemExplicit, declarative
	elemExplicit = 2 // the table or the kind is written out
	elemExprs    = 4 // elements are initialisers, not function indices
)

func (p *parser) elementSegment() (ValType, uint32) {
	off := p.pos
	flags := p.u32()
	if flags > 7 {
		p.fail(off, "element segment with flags %#x is not admitted", flags)
		return 0, 0
	}
	var table uint32
	active := flags&elemPassive == 0
	if active {
		if flags&elemExplicit != 0 {
			table = p.u32()
		}
		if uint64(table) >= uint64(len(p.m.tables)) {
			p.fail(off, "element segment for table %d of %d", table, len(p.m.tables))
			return 0, 0
		}
		p.constExpr(I32)
	}
	elem := FuncRef
	if flags&(elemPassive|elemExplicit) != 0 {
		elem = p.elementKind(flags)
	}
	if active && p.err == nil && p.m.tables[table].Elem != elem {
		p.fail(off, "element segment of %s for a table of %s", elem, p.m.tables[table].Elem)
	}
	return elem, p.elements(flags, elem)
}

func (p *parser) elementKind(flags uint32) ValType {
	if flags&elemExprs != 0 {
		return p.refType()
	}
	off := p.pos
	if kind := p.byte(); kind != 0 {
		p.fail(off, "element kind %#02x is not admitted", kind)
	}
	return FuncRef
}

func (p *parser) elements(flags uint32, elem ValType) uint32 {
	if flags&elemExprs != 0 {
		n := p.count("elements", 2)
		for i := uint32(0); i < n && p.err == nil; i++ {
			p.constExpr(elem)
		}
		return n
	}
	n := p.count("elements", 1)
	for i := uint32(0); i < n && p.err == nil; i++ {
		off := p.pos
		p.funcIndex(p.u32(), off)
	}
	return n
}

func (p *parser) dataSection() {
	off := p.pos
	n := p.count("data segments", 2)
	p.cap("data_segments", uint64(n), p.caps.DataSegments, "", off)
	if p.err != nil {
		return
	}
	p.m.datas = make([]uint32, 0, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.datas = append(p.m.datas, p.dataSegment())
	}
}

func (p *parser) dataSegment() uint32 {
	off := p.pos
	flags := p.u32()
	if flags > 2 {
		p.fail(off, "data segment with flags %#x is not admitted", flags)
	}
	if flags == 2 {
		if mem := p.u32(); mem != 0 {
			p.fail(off, "data segment for memory %d: there is one memory", mem)
		}
	}
	if flags != 1 {
		if !p.m.hasMem {
			p.fail(off, "data segment without a memory")
		}
		p.constExpr(I32)
	}
	n := p.u32()
	p.skip(n)
	return n
}
