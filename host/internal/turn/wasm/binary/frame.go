package binary

import "fmt"

// frame adds up the values that a function may keep on the machine stack while a
// callee runs. The size charged is
//
//	8 x (parameters + locals + operands + call instructions) + 64 bytes,
//
// the bracket twice where a v128 occurs in the function. "operands" is an upper
// bound of the operand stack's share, which the engine does not keep as a stack:
// each value that lives across a call gets a slot of its own, never shared. So it
// is the greatest height of the operand stack, plus the height at every place
// where the host or a callee may run, plus a quarter of the assignments to locals
// (each makes a new value; of real code a tenth to a half live across a call).
//
// Real frames are on average five eighths of that (std Go, amd64). Hostile code
// can make them larger without bound; then the engine's own limit ends the guest, in
// the same way and just as repeatably.
type frame struct {
	values           int // parameters and locals
	highest          int // greatest height of the operand stack
	hostPointHeights int // sum of the heights at the places where the host or a callee may run
	hostPoints       int // number of these places
	loops            int
	calls            int
	sets             int // local.set and local.tee
	steps            uint
	wide             bool // a v128 occurs
}

// stepsPerCharge is a distance in instructions: two charge points are rarely closer.
// At each of them the host may run.
const stepsPerCharge = 64

// countInstr counts an instruction at the given height.
func (f *frame) countInstr(height int) {
	f.steps++
	if f.steps%stepsPerCharge == 0 {
		f.countHostPoint(height)
	}
}

// countHostPoint counts a place where the host or a callee may run.
func (f *frame) countHostPoint(height int) {
	f.hostPoints++
	f.hostPointHeights += height
}

// size returns the bytes charged for a frame, or 0 for a function that calls
// nothing.
func (f *frame) size() uint32 {
	if f.calls == 0 {
		return 0
	}
	slots := f.values + f.highest + f.hostPointHeights + f.sets/4 + f.calls
	if f.wide {
		slots *= 2
	}
	return uint32(min(8*uint64(slots)+64, maxFrame))
}

// maxFrame keeps the sum inside 32 bits; it is more than any stack budget.
const maxFrame = 1 << 31

// Two bounds on a body that protect the engine; they are no caps, because no real
// code comes near them. After every place where the host or a callee may run, the
// engine loads every mutable global again, used or not (tens of gigabytes within
// the caps of body and globals). And its analysis of loops is quadratic in their
// number, and metering adds a check to each.
const (
	maxReloads = 1 << 20
	maxLoops   = 4096
)

// boundFault names the bound that a body breaks, or is empty.
func (f *frame) boundFault(mutableGlobals int) string {
	switch {
	case f.loops > maxLoops:
		return fmt.Sprintf("%d loops in one body, at most %d", f.loops, maxLoops)
	case f.hostPoints*mutableGlobals > maxReloads:
		return fmt.Sprintf("%d calls and loops in one body for %d mutable globals; their product is at most %d",
			f.hostPoints, mutableGlobals, maxReloads)
	}
	return ""
}
