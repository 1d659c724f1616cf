package wasmbin

// way is what dominates a place: how many blocks, what was alive at the loops
// among them, and how many assignments stood before the last of these.
type way struct {
	depth, inherited uint64
	assigned         int
}

// meet is an upper bound for the place that dominates both.
func (a way) meet(b way) way {
	return way{min(a.depth, b.depth), min(a.inherited, b.inherited), min(a.assigned, b.assigned)}
}

// scene is what effort keeps of an open block.
type scene struct {
	entry   way
	live    bool // the block can be reached
	reached exit // by the code so far; of an if with else, by the second arm
	first   exit // by the first arm
	outer   sets
}

// exit is how many edges lead to the end of a block, and what dominates it.
type exit struct {
	at    way
	preds uint64
}

func (x *exit) reach(at way) {
	if x.preds > 0 {
		at = x.at.meet(at)
	}
	x.at = at
	x.preds++
}

// join is the end of a block that two arms may reach: if they do, their condition
// is what dominates it.
func (x exit) join(y exit, condition way) exit {
	switch {
	case y.preds == 0:
		return x
	case x.preds == 0:
		return y
	}
	return exit{condition, x.preds + y.preds}
}
