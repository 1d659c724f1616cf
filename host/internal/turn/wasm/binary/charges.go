package binary

// maxPath is the path length, in units, at which another charge point is set. A small
// one charges loops in the middle of long functions more exactly, a large one writes
// fewer checks.
const maxPath = 128

// maxPathBehindLoop is the same for a path that begins after a loop: the loop's
// header would charge it in every iteration.
const maxPathBehindLoop = 16

// blockPath is an open block in the walk from the end to the start.
type blockPath struct {
	label   uint32 // units from a branch to the block's label to the next charge
	after   uint32 // units from behind the block's end to the next charge
	alt     uint32 // if: units from the start of its else branch
	hasElse bool
	repeats bool // a loop that is branched to
}

// chargePlanner computes the charges of a body by one walk from its end to its start.
// It carries the number of units on the longest path from the current place to the
// next charge point. Structured control makes this one number sufficient: every
// forward branch leads to an end already visited, and every backward branch to a loop
// header, which is a charge point.
type chargePlanner struct {
	blocks   []blockPath
	pathCost uint32
}

// planCharges sets the cost of the events and returns the cost of the function's
// entry.
func (c *chargePlanner) planCharges(events []event, targets []uint32) uint32 {
	c.blocks, c.pathCost = c.blocks[:0], 0
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		c.step(e, targets)
		c.pathCost += uint32(e.run)
	}
	return c.pathCost
}

// step moves the walk in front of e, and sets a charge where the path is long enough. In front of an else, or of a block's end, it never does: a
// charge there would be skipped by the branches to the end.
func (c *chargePlanner) step(e *event, targets []uint32) {
	switch e.kind {
	case evEnd:
		c.chargeIfLong(e)
		c.pushBlock(e)
	case evElse:
		top := &c.blocks[len(c.blocks)-1]
		top.alt, top.hasElse = c.pathCost, true
		c.pathCost = top.after
	case evBlock:
		c.popBlock()
	case evLoop:
		if c.popBlock().repeats {
			e.cost, c.pathCost = c.pathCost, 0
		}
	default:
		c.joinPaths(e, targets)
		c.pathCost += uint32(e.weight)
		c.chargeIfLong(e)
	}
}

// joinPaths joins the paths that part at e.
func (c *chargePlanner) joinPaths(e *event, targets []uint32) {
	switch e.kind {
	case evIf:
		top := c.popBlock()
		if !top.hasElse {
			top.alt = top.after
		}
		c.pathCost = max(c.pathCost, top.alt)
	case evBr:
		c.pathCost = c.labelCost(e.arg)
	case evBrIf:
		c.pathCost = max(c.pathCost, c.labelCost(e.arg))
	case evTable:
		c.pathCost = 0
		for _, x := range targets[e.arg : e.arg+e.n] {
			c.pathCost = max(c.pathCost, c.labelCost(x))
		}
	case evStop, evReturn:
		c.pathCost = 0
	}
}

func (c *chargePlanner) chargeIfLong(e *event) {
	limit := uint32(maxPath)
	if e.kind == evEnd && e.n != 0 {
		limit = maxPathBehindLoop
	}
	if c.pathCost >= limit {
		e.cost, c.pathCost = c.pathCost, 0
	}
}

func (c *chargePlanner) pushBlock(e *event) {
	j := blockPath{label: c.pathCost, after: c.pathCost}
	if opcode(e.arg) == opLoop {
		j.label, j.repeats = 0, e.n != 0
	}
	c.blocks = append(c.blocks, j)
}

func (c *chargePlanner) popBlock() blockPath {
	top := c.blocks[len(c.blocks)-1]
	c.blocks = c.blocks[:len(c.blocks)-1]
	return top
}

func (c *chargePlanner) labelCost(x uint32) uint32 {
	return c.blocks[len(c.blocks)-1-int(x)].label
}
