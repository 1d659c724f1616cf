package binary

// indexed checks an instruction with an index of something outside the function.
func (p *parser) indexed(in *instr) {
	switch in.info.imm {
	case immFunc:
		p.funcOp(in)
		return
	case immIndirect:
		p.callIndirect(in)
		return
	case immGlobal:
		p.globalOp(in)
	case immTable:
		p.tableIndex(in.x, in.off)
	case immTable2:
		p.tableCopy(in)
	case immElemTable:
		p.tableInit(in)
	case immElem:
		p.elemIndex(in.x, in.off)
	case immData, immDataMem:
		p.dataIndex(in)
	case immTypes:
		if ValType(in.x) == V128 {
			p.check.frame.wide = true
		}
	}
	p.plain(in)
	if in.op.bulk() {
		p.check.frame.countHostPoint(p.check.height)
		p.check.countCall(4) // of a helper
	}
}

func (i *opInfo) touchesMemory() bool {
	switch i.imm {
	case immMem, immMemLane, immMemZero, immMemZero2, immDataMem:
		return true
	}
	return false
}

func (p *parser) funcOp(in *instr) {
	p.funcIndex(in.x, in.off)
	if p.err != nil {
		return
	}
	if in.op == opRefFunc {
		p.check.frame.countHostPoint(p.check.height)
		p.check.push(1)
		return
	}
	p.call(in, &p.m.Types[p.m.funcs[in.x]])
}

func (p *parser) callIndirect(in *instr) {
	p.tableIndex(in.y, in.off)
	if p.err == nil && p.m.tables[in.y].Elem != FuncRef {
		p.fail(in.off, "call_indirect through a table of %s", p.m.tables[in.y].Elem)
	}
	if uint64(in.x) >= uint64(len(p.m.Types)) {
		p.fail(in.off, "type %d of %d", in.x, len(p.m.Types))
	}
	if p.err != nil {
		return
	}
	p.pop(in, 1)
	p.call(in, &p.m.Types[in.x])
}

func (p *parser) call(in *instr, t *FuncType) {
	c := &p.check
	p.pop(in, len(t.Params))
	c.frame.calls++
	c.frame.countHostPoint(c.height)
	c.frame.wide = c.frame.wide || t.wide
	c.push(len(t.Results))
	c.countCall(len(t.Params) + len(t.Results))
}

func (p *parser) globalOp(in *instr) {
	if uint64(in.x) >= uint64(len(p.m.Globals)) {
		p.fail(in.off, "global %d of %d", in.x, len(p.m.Globals))
		return
	}
	g := p.m.Globals[in.x]
	if in.op == opGlobalSet && !g.Mutable {
		p.fail(in.off, "global %d is constant", in.x)
	}
	if g.Type == V128 {
		p.check.frame.wide = true
	}
}

func (p *parser) tableIndex(i uint32, off int) {
	if uint64(i) >= uint64(len(p.m.tables)) {
		p.fail(off, "table %d of %d", i, len(p.m.tables))
	}
}

func (p *parser) elemIndex(i uint32, off int) {
	if uint64(i) >= uint64(len(p.m.elems)) {
		p.fail(off, "element segment %d of %d", i, len(p.m.elems))
	}
}

// dataIndex needs the count that precedes the code: the segments follow it.
func (p *parser) dataIndex(in *instr) {
	if int64(in.x) >= p.dataCount {
		p.fail(in.off, "data segment %d of %d", in.x, max(p.dataCount, 0))
	}
}

func (p *parser) tableCopy(in *instr) {
	p.tableIndex(in.x, in.off)
	p.tableIndex(in.y, in.off)
	if p.err == nil && p.m.tables[in.x].Elem != p.m.tables[in.y].Elem {
		p.fail(in.off, "table.copy between tables of different types")
	}
}

func (p *parser) tableInit(in *instr) {
	p.elemIndex(in.x, in.off)
	p.tableIndex(in.y, in.off)
	if p.err == nil && p.m.elems[in.x] != p.m.tables[in.y].Elem {
		p.fail(in.off, "table.init of %s into a table of %s", p.m.elems[in.x], p.m.tables[in.y].Elem)
	}
}
