package wasmbin

// chunk is the path length at which the cost pass sets another charge point. A
// small one charges loops in the middle of long functions more exactly, a large
// one writes fewer checks.
const chunk = 128

// chunkBehindLoop is the same for a path that begins where a loop is left: the
// loop's header would charge it at every turn.
const chunkBehindLoop = 16

// join is a block seen from its end.
type join struct {
	label   uint32 // units from a branch to the block's label to the next charge
	after   uint32 // units from behind the block's end to the next charge
	alt     uint32 // if: units from the start of its else branch
	hasElse bool
	turns   bool // a loop that is branched to
}

// coster computes the charges of a body by one walk from its end to its start.
// What it carries is the number of units on the longest path from the place
// reached so far to the next charge point. Structured control makes this one
// number enough: every forward branch leads to an end already seen, and every
// backward branch to a loop header, which is a charge point.
type coster struct {
	joins []join
	cur   uint32
}

// charge sets the cost of the events and returns that of the function's entry.
func (c *coster) charge(events []event, targets []uint32) uint32 {
	c.joins, c.cur = c.joins[:0], 0
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		c.step(e, targets)
		c.cur += uint32(e.run)
	}
	return c.cur
}

// step moves the walk in front of e, and takes what has come together where it
// is long enough. In front of an else, or of a block's end, it never does: a
// charge there would be skipped by the branches to the end.
func (c *coster) step(e *event, targets []uint32) {
	switch e.kind {
	case evEnd:
		c.split(e)
		c.end(e)
	case evElse:
		top := &c.joins[len(c.joins)-1]
		top.alt, top.hasElse = c.cur, true
		c.cur = top.after
	case evBlock:
		c.leave()
	case evLoop:
		if c.leave().turns {
			e.cost, c.cur = c.cur, 0
		}
	default:
		c.flow(e, targets)
		c.cur += uint32(e.weight)
		c.split(e)
	}
}

// flow joins the paths that part at e.
func (c *coster) flow(e *event, targets []uint32) {
	switch e.kind {
	case evIf:
		top := c.leave()
		if !top.hasElse {
			top.alt = top.after
		}
		c.cur = max(c.cur, top.alt)
	case evBr:
		c.cur = c.label(e.arg)
	case evBrIf:
		c.cur = max(c.cur, c.label(e.arg))
	case evTable:
		c.cur = 0
		for _, x := range targets[e.arg : e.arg+e.n] {
			c.cur = max(c.cur, c.label(x))
		}
	case evStop, evReturn:
		c.cur = 0
	}
}

func (c *coster) split(e *event) {
	limit := uint32(chunk)
	if e.kind == evEnd && e.n != 0 {
		limit = chunkBehindLoop
	}
	if c.cur >= limit {
		e.cost, c.cur = c.cur, 0
	}
}

func (c *coster) end(e *event) {
	j := join{label: c.cur, after: c.cur}
	if opcode(e.arg) == opLoop {
		j.label, j.turns = 0, e.n != 0
	}
	c.joins = append(c.joins, j)
}

func (c *coster) leave() join {
	top := c.joins[len(c.joins)-1]
	c.joins = c.joins[:len(c.joins)-1]
	return top
}

func (c *coster) label(x uint32) uint32 {
	return c.joins[len(c.joins)-1-int(x)].label
}
