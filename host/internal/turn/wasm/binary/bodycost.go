package binary

import "math/bits"

// bodyCost estimates the time of compiling a body, in nanoseconds of wazero on a
// machine of 2026; the estimate itself depends on the body only. Counts alone do not
// bound that time, because it grows with products:
//
//   - from every edge of the control flow the engine walks up the dominators, so
//     an edge costs by its depth;
//   - along every edge it keeps the values that may be alive: the locals, the
//     operands, and all values alive where a dominating loop began;
//   - where edges join, values set on the way become parameters of the block. To
//     find a redundant one the engine reads all of them, for each edge. It repeats
//     this for the whole body until nothing changes, and a round may find just one:
//     rounds grow with each loop around, and with each local of a loop that is a
//     copy of another value;
//   - a call costs by its operands, and after it all mutable globals are loaded.
//
// One walk counts everything, by an upper bound where the exact number would take
// longer. The code that metering adds is included.
type bodyCost struct {
	size         uint64 // bytes of the body
	locals       uint64 // of the function
	reloads      uint64 // mutable globals
	indices      uint64 // globals of any kind
	sum          uint64 // estimate so far, without phis
	phis         uint64 // parameters read in one round
	rounds       uint64
	joiningEdges uint64   // edges that join others
	globals      localSet // that occur
	edges        uint64
	dom          dominators
	reachable    bool      // the place can be reached
	fresh        bool      // the last instruction made the value on top of the stack
	computed     localSet  // locals whose value an instruction made since the last join
	occurred     localSets // locals that occur in the innermost open block
	units        int       // of fuel since the last charge
	calls        bool      // one or more
	loopDepth    uint64
	maxLoopDepth uint64 // nesting of loops
	assigned     int    // assignments so far
}

// Cost of one of each in a small body, in nanoseconds; measured, see RATIONALE.md.
const (
	costInstr    = 100
	costVector   = 500
	costAccess   = 1800 // to the memory
	costDivision = 1500
	costConvert  = 3000 // to integers
	costTable    = 1600
	costIndirect = 4000 // more than another call
	costEdge     = 550
	costDepth    = 3
	costValue    = 10
	costParam    = 200
	costCall     = 700
	costPassed   = 400
	costReload   = 40
	costFrame    = 3500 // of a function that calls
	phisPerNano  = 2
)

// costlyBody is the length in bytes from which on a body costs twice as much for
// each byte: such a body does not fit into the processor's caches.
const costlyBody = 16 << 10

// reset starts a body of size bytes.
func (e *bodyCost) reset(size int, locals uint64, mutable, globals int) {
	*e = bodyCost{size: uint64(size), locals: locals, reloads: uint64(mutable + addedGlobals), indices: uint64(globals), reachable: true}
}

func (e *bodyCost) add(n, cost uint64) { e.sum = plus(e.sum, times(n, cost)) }

// total is the estimate for the body. The globals that occur in it are parameters
// wherever edges join: most join after a call, which may have changed them.
func (e *bodyCost) total() uint64 {
	globals := min(e.globals.size(e.indices), e.reloads)
	e.add(times(globals, e.joiningEdges), costParam)
	phis := plus(e.phis, times(times(globals, globals), e.joiningEdges))
	rounds := plus(plus(e.rounds, e.maxLoopDepth), 1)
	own := plus(e.sum, times(phis, rounds)/phisPerNano)
	return plus(own, times(own/costlyBody, e.size))
}

// cost is the time of an instruction without its edges, values and calls.
func (in *instr) cost() uint64 {
	switch in.info.imm {
	case immMem, immMemLane:
		return costAccess
	case immTable:
		return costTable
	case immIndirect:
		return costIndirect
	}
	switch {
	case in.op>>8 == prefixVector:
		return costVector
	case in.op>>8 == prefixMisc, in.op >= 0xa8 && in.op <= 0xb1:
		return costConvert
	case in.op >= 0x6d && in.op <= 0x70, in.op >= 0x7f && in.op <= 0x82:
		return costDivision
	}
	return costInstr
}

// plus and times saturate at the largest number.
func plus(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return 1<<64 - 1
	}
	return low
}

// countEdges counts n edges that leave the current place.
func (c *checker) countEdges(n uint64) {
	e := &c.cost
	if !e.reachable {
		return
	}
	e.edges += n
	alive := plus(e.locals+uint64(c.height), e.dom.inherited)
	e.add(n, costEdge+costDepth*e.dom.depth)
	e.add(n, times(alive, costValue))
}

// countCharge counts the code of a charge point: a condition around a call.
func (c *checker) countCharge() {
	e := &c.cost
	if !e.reachable {
		return
	}
	e.dom.depth++
	c.countEdges(4)
	e.joiningEdges += 2
	e.add(e.reloads, costReload)
	e.units = 0
}

// countInstr counts an instruction before its effect on the operand stack.
func (c *checker) countInstr(in *instr) {
	e := &c.cost
	if !e.reachable {
		return
	}
	e.add(1, in.cost())
	e.units += int(in.info.weight)
	if e.units >= maxPath-runMax {
		c.countCharge()
	}
	switch in.info.imm {
	case immLocal:
		e.countLocal(in)
	case immGlobal:
		e.globals.put(in.x)
		e.fresh = false
	case immFunc, immIndirect:
		e.fresh = true
	default:
		e.fresh = in.info.push > 0
	}
}

// countLocal counts a use of a local. A value that an instruction has made since the
// last join is new in every turn of a loop, so it keeps no parameter redundant.
func (e *bodyCost) countLocal(in *instr) {
	e.occurred.touches.put(in.x)
	if in.op == opLocalGet {
		e.fresh = e.locals <= maxTracked && e.computed.has(in.x)
		return
	}
	e.assigned++
	e.occurred.assigns.put(in.x)
	if e.fresh {
		e.computed.put(in.x)
	} else {
		e.computed.drop(in.x)
		e.occurred.copies.put(in.x)
	}
	e.fresh = e.fresh && in.op == opLocalTee
}

// countOpen counts the block f, which is about to be opened.
func (c *checker) countOpen(f *ctrl) {
	e := &c.cost
	f.cost = blockCost{entry: e.dom, reachable: e.reachable, outer: e.occurred}
	e.occurred = localSets{}
	switch f.op {
	case opIf:
		c.countEdges(2)
		e.dom.depth++
	case opLoop:
		e.computed = localSet{}
		e.loopDepth++
		e.maxLoopDepth = max(e.maxLoopDepth, e.loopDepth)
		c.countEdges(1)
		e.dom.depth++
		changed := min(e.locals, uint64(e.assigned-e.dom.assigned))
		e.dom.inherited = plus(e.dom.inherited, changed+uint64(c.height))
		e.dom.assigned = e.assigned
		c.countCharge()
	}
}

// countBranch counts an edge from the current place to the label of f.
func (c *checker) countBranch(f *ctrl) {
	if c.cost.reachable {
		c.countEdges(1)
		f.cost.reached.addEdge(c.cost.dom)
	}
}

// countFallthrough counts the edge to the code after a br_if, and the block that
// splits the other edge.
func (c *checker) countFallthrough() {
	c.countEdges(2)
	c.cost.dom.depth++
}

// countElse goes from the end of the first arm of f to the start of the second.
func (c *checker) countElse(f *ctrl) {
	e := &c.cost
	s := &f.cost
	c.countBranch(f)
	s.first, s.reached = s.reached, blockEnd{}
	e.reachable, e.dom, e.computed = s.reachable, s.entry, localSet{}
	e.dom.depth++
}

// countEnd counts the end of f.
func (c *checker) countEnd(f *ctrl) {
	e := &c.cost
	if f.op == opLoop {
		e.loopDepth--
		e.countJoin(e.occurred.touches.size(e.locals)+uint64(f.params), f.cost.reached.edges+1)
		e.rounds += e.occurred.copies.size(e.locals) + uint64(f.params)
		c.countCharge()
	} else {
		c.joinBlockEnd(f)
	}
	c.countEdges(1)
	e.occurred.join(&f.cost.outer)
	e.computed = localSet{}
}

// joinBlockEnd joins the edges to the end of a block that is not a loop.
func (c *checker) joinBlockEnd(f *ctrl) {
	e := &c.cost
	s := &f.cost
	if f.op == opIf { // the second arm is empty
		c.countElse(f)
	}
	c.countBranch(f)
	end := s.first.join(s.reached, s.entry)
	e.reachable, e.dom = end.edges > 0, end.dom
	e.dom.depth++
	params := uint64(f.results)
	if len(c.ctrl) > 1 { // after the function its locals are not read
		params += e.occurred.assigns.size(e.locals)
	}
	e.countJoin(params, end.edges)
}

// countJoin counts the parameters of a block where edges join.
func (e *bodyCost) countJoin(params, preds uint64) {
	if preds > 1 {
		e.joiningEdges += preds
		e.phis = plus(e.phis, times(times(params, params), preds))
		e.add(times(params, preds), costParam)
	}
}

// countCall counts a call with a number of parameters and results.
func (c *checker) countCall(values int) {
	e := &c.cost
	if !e.reachable {
		return
	}
	if !e.calls {
		e.calls = true
		e.add(1, costFrame)
	}
	e.add(1, costCall)
	e.add(uint64(values), costPassed)
	e.add(e.reloads, costReload)
}
