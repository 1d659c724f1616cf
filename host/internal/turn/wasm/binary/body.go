package binary

import "fmt"

// checker walks one function body. It follows the *number* of operands and the
// nesting of blocks exactly, also in unreachable code; the engine checks their types: a body that passes here has the heights that frame.go relies on.
type checker struct {
	fn      uint32 // index in the whole function space, for messages
	mutable int    // mutable globals of the module
	locals  uint64 // parameters included
	height  int
	ctrl    []ctrl
	frame   frame
	cost    bodyCost
}

func (p *parser) codeSection() {
	n := p.count("function bodies", 2)
	if p.err == nil && uint64(n) != uint64(len(p.m.Functions)) {
		p.fail(p.pos, "%d functions declared, %d defined", len(p.m.Functions), n)
	}
	if p.err != nil {
		return
	}
	p.check.mutable = len(p.m.MutableGlobals())
	p.cost.code = max(uint64(p.left()), minCode)
	p.m.bodies = make([]body, 0, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.bodies = append(p.m.bodies, p.functionBody(i))
		p.addBodyCost()
	}
}

func (p *parser) functionBody(i uint32) body {
	off := p.pos
	size := p.u32()
	p.check.fn = uint32(p.m.imported.funcs) + i
	if int64(size) > p.caps.Body {
		p.cap("body", uint64(size), p.caps.Body, p.where(), off)
	}
	p.m.used.Body = max(p.m.used.Body, int64(size))
	if p.err == nil && uint64(size) > uint64(p.left()) {
		p.fail(off, "function body of %d bytes, %d left", size, p.left())
	}
	if p.err != nil {
		return body{}
	}
	outer := p.end
	p.end = p.pos + int(size)
	b := body{span: span{p.pos, p.end}}
	t := &p.m.Types[p.m.Functions[i]]
	p.check.frame = frame{values: len(t.Params), wide: t.wide}
	p.localDecls(len(t.Params))
	b.code = p.pos
	p.instructions(t)
	b.frame = p.check.frame.size()
	if reason := p.check.frame.boundFault(p.check.mutable); reason != "" {
		p.fail(off, "%s: %s", p.where(), reason)
	}
	p.end = outer
	return b
}

func (p *parser) where() string { return fmt.Sprintf("function %d", p.check.fn) }

// localDecls adds up the declared locals in 64 bits: a group of ten bytes can
// declare four billion, and nothing may be allocated for them before the cap.
func (p *parser) localDecls(params int) {
	off := p.pos
	sum := uint64(params)
	groups := p.count("groups of locals", 2)
	for g := uint32(0); g < groups && p.err == nil; g++ {
		sum += uint64(p.u32())
		if p.valType() == V128 {
			p.check.frame.wide = true
		}
	}
	if p.err == nil && sum > uint64(max(p.caps.Locals, 0)) {
		p.cap("locals", sum, p.caps.Locals, p.where(), off)
	}
	p.m.used.Locals = max(p.m.used.Locals, int64(sum))
	p.check.locals = sum
	p.check.frame.values = int(sum)
}

// instructions walks to the end of the body, where the function's own block must end.
func (p *parser) instructions(t *FuncType) {
	c := &p.check
	c.height = 0
	c.ctrl = append(c.ctrl[:0], ctrl{op: opBlock, results: len(t.Results), cost: blockCost{reachable: true}})
	c.cost.reset(p.left(), c.locals, c.mutable, len(p.m.Globals))
	c.countCharge()
	var in instr
	for p.err == nil && len(c.ctrl) > 0 {
		p.next(&in)
		c.frame.countInstr(c.height)
		c.countInstr(&in)
		switch in.info.imm {
		case immNone, immI32, immMem:
			p.plain(&in)
		case immLocal:
			p.localOp(&in)
		case immBlock:
			p.open(&in)
		case immStructured:
			p.structured(&in)
		case immLabel:
			p.branch(&in)
		case immLabels:
			p.branchTable(&in)
		default:
			p.indexed(&in)
		}
	}
	if p.err == nil && p.pos != p.end {
		p.fail(p.pos, "function %d goes on after its end", c.fn)
	}
}

// plain handles an instruction that pops and pushes the numbers in its opInfo.
func (p *parser) plain(in *instr) {
	if in.info.touchesMemory() && !p.m.hasMem {
		p.fail(in.off, "memory instruction without a memory")
	}
	if in.op>>8 == prefixVector {
		p.check.frame.wide = true
	}
	p.pop(in, int(in.info.pop))
	p.check.push(int(in.info.push))
}

func (c *checker) push(n int) {
	c.height += n
	c.frame.highest = max(c.frame.highest, c.height)
}

// pop takes n operands. Unreachable code may take more than the block has.
func (p *parser) pop(in *instr, n int) {
	c := &p.check
	f := &c.ctrl[len(c.ctrl)-1]
	c.height -= n
	if c.height >= f.base {
		return
	}
	if !f.dead {
		p.fail(in.off, "function %d: operand missing", c.fn)
	}
	c.height = f.base
}

func (c *checker) markUnreachable() {
	f := &c.ctrl[len(c.ctrl)-1]
	f.dead = true
	c.cost.reachable = false
	c.height = f.base
}

func (p *parser) localOp(in *instr) {
	if uint64(in.x) >= p.check.locals {
		p.fail(in.off, "local %d of %d", in.x, p.check.locals)
	}
	p.pop(in, int(in.info.pop))
	p.check.push(int(in.info.push))
	if in.op != opLocalGet {
		p.check.frame.sets++
	}
}

func (p *parser) open(in *instr) {
	c := &p.check
	f := ctrl{op: in.op}
	if in.bt.index >= 0 {
		if in.bt.index >= int64(len(p.m.Types)) {
			p.fail(in.off, "type %d of %d", in.bt.index, len(p.m.Types))
			return
		}
		t := &p.m.Types[in.bt.index]
		f.params, f.results = len(t.Params), len(t.Results)
		c.frame.wide = c.frame.wide || t.wide
	} else if in.bt.result != 0 {
		f.results = 1
		c.frame.wide = c.frame.wide || in.bt.result == V128
	}
	if in.op == opIf {
		p.pop(in, 1)
	}
	p.pop(in, f.params)
	f.base = c.height
	c.push(f.params)
	if in.op == opLoop {
		c.frame.loops++
		c.frame.countHostPoint(c.height)
	}
	c.countOpen(&f)
	c.ctrl = append(c.ctrl, f)
	depth := int64(len(c.ctrl) - 1)
	p.m.used.Nesting = max(p.m.used.Nesting, depth)
	if depth > p.caps.Nesting {
		p.cap("nesting", uint64(depth), p.caps.Nesting, p.where(), in.off)
	}
}

func (p *parser) structured(in *instr) {
	c := &p.check
	switch in.op {
	case opUnreachable:
		c.markUnreachable()
	case opReturn:
		p.pop(in, c.ctrl[0].results)
		c.countBranch(&c.ctrl[0])
		c.markUnreachable()
	case opElse:
		f := p.finishBlock(in)
		if f.op != opIf {
			p.fail(in.off, "else without if")
		}
		f.op, f.dead = opElse, false
		c.countElse(f)
		c.height = f.base
		c.push(f.params)
	case opEnd:
		f := p.finishBlock(in)
		if f.op == opIf && f.params != f.results {
			p.fail(in.off, "if without else takes %d operands and leaves %d", f.params, f.results)
		}
		c.height = f.base
		c.push(f.results)
		c.countEnd(f)
		c.ctrl = c.ctrl[:len(c.ctrl)-1]
	}
}

func (p *parser) branch(in *instr) {
	if in.op == opBrIf {
		p.pop(in, 1)
	}
	f := p.label(in.x, in.off)
	arity := f.labelArity()
	p.pop(in, arity)
	p.check.countBranch(f)
	if in.op == opBr {
		p.check.markUnreachable()
		return
	}
	p.check.countFallthrough()
	p.check.push(arity)
}

func (p *parser) branchTable(in *instr) {
	p.m.used.BrTable = max(p.m.used.BrTable, int64(in.x))
	if int64(in.x) > p.caps.BrTable {
		p.cap("br_table", uint64(in.x), p.caps.BrTable, p.where(), in.off)
	}
	arity := -1
	for i := uint64(0); i <= uint64(in.x) && p.err == nil; i++ {
		off := p.pos
		f := p.label(p.u32(), off)
		p.check.countBranch(f)
		p.check.countEdges(1) // the engine puts a block in front of each label
		got := f.labelArity()
		if arity >= 0 && got != arity {
			p.fail(off, "labels of a br_table take %d and %d operands", arity, got)
		}
		arity = got
	}
	if p.err != nil {
		return
	}
	p.pop(in, 1)
	p.pop(in, arity)
	p.check.markUnreachable()
}
