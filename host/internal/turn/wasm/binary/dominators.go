package binary

// dominators describes the blocks that dominate a place: their number, the values
// alive at the loops among them, and the assignments before the last of these loops.
type dominators struct {
	depth, inherited uint64
	assigned         int
}

// meet is an upper bound for the place that dominates both.
func (a dominators) meet(b dominators) dominators {
	return dominators{min(a.depth, b.depth), min(a.inherited, b.inherited), min(a.assigned, b.assigned)}
}

// blockCost is the state of an open block in bodyCost.
type blockCost struct {
	entry     dominators
	reachable bool     // the block can be reached
	reached   blockEnd // edges so far; of an if with else, from the second arm
	first     blockEnd // edges from the first arm
	outer     localSets
}

// blockEnd is the number of edges to the end of a block, and its dominators.
type blockEnd struct {
	dom   dominators
	edges uint64
}

func (x *blockEnd) addEdge(at dominators) {
	if x.edges > 0 {
		at = x.dom.meet(at)
	}
	x.dom = at
	x.edges++
}

// join returns the end of a block with two arms. If both reach it, their condition
// dominates it.
func (x blockEnd) join(y blockEnd, condition dominators) blockEnd {
	switch {
	case y.edges == 0:
		return x
	case x.edges == 0:
		return y
	}
	return blockEnd{condition, x.edges + y.edges}
}
