package wasmbin

import "math/bits"

// effort estimates what compiling a body takes, in nanoseconds of the engine that
// is in use, on a machine of today; the estimate itself depends on nothing but
// the body. Counts alone do not bound that cost, because it goes with products:
//
//   - from every edge of the control flow the engine walks up the dominators, so
//     edges cost by their depth;
//   - along every edge it keeps the values that may be alive: the locals, the
//     operands, and all that was alive where a dominating loop began;
//   - where edges meet, values set on the way become parameters of the block, and
//     each time the engine looks whether one is redundant it reads all of them, for
//     each edge. It repeats that for the whole body until nothing changes, and a
//     round may find just one: by each loop around, and by each local of a loop
//     that is a copy of another value;
//   - calls cost by their operands, and behind them all mutable globals are loaded.
//
// Everything is counted in one walk, as an upper bound where the exact number
// would take more. What metering adds is counted with it.
type effort struct {
	size     uint64 // bytes of the body
	locals   uint64 // of the function
	reloads  uint64 // mutable globals
	indices  uint64 // globals of any kind
	sum      uint64 // estimate so far, without phis
	phis     uint64 // parameters read in one round
	rounds   uint64
	meeting  uint64 // edges that meet others
	globals  bag    // that occur
	edges    uint64
	at       way
	live     bool // the place can be reached
	fresh    bool // the last instruction made the value on top of the stack
	made     bag  // locals whose value an instruction made since the last join
	since    sets // what became of locals in the innermost open block
	units    int  // of fuel since the last charge
	calls    bool // one or more
	nest     uint64
	deepest  uint64 // nesting of loops
	assigned int    // assignments so far
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
// each byte: by then it has left the processor's caches.
const costlyBody = 16 << 10

// begin starts a body of so many bytes.
func (e *effort) begin(size int, locals uint64, mutable, globals int) {
	*e = effort{size: uint64(size), locals: locals, reloads: uint64(mutable + addedGlobals), indices: uint64(globals), live: true}
}

func (e *effort) add(n, cost uint64) { e.sum = plus(e.sum, times(n, cost)) }

// total is the estimate for the body. The globals that occur in it are parameters
// wherever edges meet: most meet behind a call, which may have changed them.
func (e *effort) total() uint64 {
	globals := min(e.globals.size(e.indices), e.reloads)
	e.add(times(globals, e.meeting), costParam)
	phis := plus(e.phis, times(times(globals, globals), e.meeting))
	rounds := plus(plus(e.rounds, e.deepest), 1)
	own := plus(e.sum, times(phis, rounds)/phisPerNano)
	return plus(own, times(own/costlyBody, e.size))
}

// cost is what an instruction takes besides its edges, values and calls.
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

// plus and times stay at the largest number instead of starting anew.
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

// flow counts edges that leave the place reached.
func (c *checker) flow(n uint64) {
	e := &c.effort
	if !e.live {
		return
	}
	e.edges += n
	alive := plus(e.locals+uint64(c.height), e.at.inherited)
	e.add(n, costEdge+costDepth*e.at.depth)
	e.add(n, times(alive, costValue))
}

// charge counts what metering writes at a charge point: a condition around a call.
func (c *checker) charge() {
	e := &c.effort
	if !e.live {
		return
	}
	e.at.depth++
	c.flow(4)
	e.meeting += 2
	e.add(e.reloads, costReload)
	e.units = 0
}

// worked counts an instruction that is about to be executed.
func (c *checker) worked(in *instr) {
	e := &c.effort
	if !e.live {
		return
	}
	e.add(1, in.cost())
	e.units += int(in.info.weight)
	if e.units >= chunk-runMax {
		c.charge()
	}
	switch in.info.imm {
	case immLocal:
		e.local(in)
	case immGlobal:
		e.globals.put(in.x)
		e.fresh = false
	case immFunc, immIndirect:
		e.fresh = true
	default:
		e.fresh = in.info.push > 0
	}
}

// local counts a use of a local. A value that an instruction has made since the
// last join is new in every turn of a loop, so it keeps no parameter redundant.
func (e *effort) local(in *instr) {
	e.since.touches.put(in.x)
	if in.op == opLocalGet {
		e.fresh = e.locals <= few && e.made.has(in.x)
		return
	}
	e.assigned++
	e.since.assigns.put(in.x)
	if e.fresh {
		e.made.put(in.x)
	} else {
		e.made.drop(in.x)
		e.since.copies.put(in.x)
	}
	e.fresh = e.fresh && in.op == opLocalTee
}

// entered counts the block f, which is about to be opened.
func (c *checker) entered(f *ctrl) {
	e := &c.effort
	f.scene = scene{entry: e.at, live: e.live, outer: e.since}
	e.since = sets{}
	switch f.op {
	case opIf:
		c.flow(2)
		e.at.depth++
	case opLoop:
		e.made = bag{}
		e.nest++
		e.deepest = max(e.deepest, e.nest)
		c.flow(1)
		e.at.depth++
		changed := min(e.locals, uint64(e.assigned-e.at.assigned))
		e.at.inherited = plus(e.at.inherited, changed+uint64(c.height))
		e.at.assigned = e.assigned
		c.charge()
	}
}

// branched counts an edge from the place reached to the label of f.
func (c *checker) branched(f *ctrl) {
	if c.effort.live {
		c.flow(1)
		f.scene.reached.reach(c.effort.at)
	}
}

// parted counts the edge that goes on behind a br_if, and the block that splits
// the other one.
func (c *checker) parted() {
	c.flow(2)
	c.effort.at.depth++
}

// elsed goes from the end of the first arm of f to the start of the second.
func (c *checker) elsed(f *ctrl) {
	e := &c.effort
	s := &f.scene
	c.branched(f)
	s.first, s.reached = s.reached, exit{}
	e.live, e.at, e.made = s.live, s.entry, bag{}
	e.at.depth++
}

// left counts the end of f.
func (c *checker) left(f *ctrl) {
	e := &c.effort
	if f.op == opLoop {
		e.nest--
		e.meet(e.since.touches.size(e.locals)+uint64(f.params), f.scene.reached.preds+1)
		e.rounds += e.since.copies.size(e.locals) + uint64(f.params)
		c.charge()
	} else {
		c.ended(f)
	}
	c.flow(1)
	e.since.join(&f.scene.outer)
	e.made = bag{}
}

// ended joins all that reaches the end of a block, which is no loop.
func (c *checker) ended(f *ctrl) {
	e := &c.effort
	s := &f.scene
	if f.op == opIf { // the second arm is empty
		c.elsed(f)
	}
	c.branched(f)
	end := s.first.join(s.reached, s.entry)
	e.live, e.at = end.preds > 0, end.at
	e.at.depth++
	params := uint64(f.results)
	if len(c.ctrl) > 1 { // behind the function nothing reads its locals
		params += e.since.assigns.size(e.locals)
	}
	e.meet(params, end.preds)
}

// meet counts the parameters of a block where edges meet.
func (e *effort) meet(params, preds uint64) {
	if preds > 1 {
		e.meeting += preds
		e.phis = plus(e.phis, times(times(params, params), preds))
		e.add(times(params, preds), costParam)
	}
}

// called counts a call that passes so many values both ways.
func (c *checker) called(values int) {
	e := &c.effort
	if !e.live {
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
