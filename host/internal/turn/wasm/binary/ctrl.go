package binary

// ctrl is an open block. The first one is the function itself.
type ctrl struct {
	op              opcode
	base            int // operands below the block
	params, results int
	dead            bool // the rest of the block cannot be reached
	cost            blockCost
}

// labelArity is the number of operands a branch to the block takes.
func (f *ctrl) labelArity() int {
	if f.op == opLoop {
		return f.params
	}
	return f.results
}

// finishBlock checks that exactly the results of the innermost block are left.
func (p *parser) finishBlock(in *instr) *ctrl {
	c := &p.check
	f := &c.ctrl[len(c.ctrl)-1]
	left := c.height - f.base
	if left > f.results || left < f.results && !f.dead {
		p.fail(in.off, "function %d: block leaves %d operands of %d", c.fn, left, f.results)
	}
	return f
}

// label returns the block that label x leads to.
func (p *parser) label(x uint32, off int) *ctrl {
	c := &p.check
	if uint64(x) >= uint64(len(c.ctrl)) {
		p.fail(off, "label %d of %d", x, len(c.ctrl))
		return &c.ctrl[0]
	}
	return &c.ctrl[len(c.ctrl)-1-int(x)]
}
