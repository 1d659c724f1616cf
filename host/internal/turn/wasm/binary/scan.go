package binary

// event is a place in a body where the rewriter may have to write something, or
// where control flow joins or parts. The plain instructions between two events are
// copied unchanged.
type event struct {
	kind     eventKind
	weight   uint8  // of the instruction itself
	run      uint16 // units of the plain instructions since the event before
	off, end uint32 // the instruction; equal for a mark
	arg      uint32 // label, function, helper; br_table: first of its targets
	n        uint32 // br_table: number of targets; return: depth; end: the way out of a loop
	cost     uint32 // set by the cost pass: units to take here
}

type eventKind uint8

const (
	evMark   eventKind = iota // a place for a charge
	evBlock                   // block
	evLoop                    // loop: its charge follows it, so that every iteration is charged
	evIf                      // if
	evElse                    // else
	evEnd                     // end: its charge follows it, where all paths join
	evBr                      // br
	evBrIf                    // br_if
	evTable                   // br_table
	evStop                    // unreachable
	evReturn                  // return
	evCall                    // call or ref.func of a function that has a new index
	evHelper                  // replaced by a call of a helper
	evPaid                    // preceded or followed by a helper that charges
)

// runMax bounds the units between two events, and so how far a charge point can
// lie from the place that planCharges would choose.
const runMax = 32

// scope is an open block as the scanner sees it.
type scope struct {
	op   opcode
	loop int  // innermost loop at or around the block: its index, or -1
	exit bool // a branch out of a loop leads to its end, or it is a loop with a branch to it
}

// scanner turns one admitted body into events. Its slices are reused.
type scanner struct {
	m       *Module
	events  []event
	targets []uint32 // labels of all br_tables
	blocks  []scope  // open blocks, the function not counted
	run     int
	helpers *helpers
}

// scan reads the instructions of a body. It cannot fail: Admit has read the same
// bytes.
func (s *scanner) scan(b *body) {
	s.events, s.targets, s.blocks, s.run = s.events[:0], s.targets[:0], s.blocks[:0], 0
	r := reader{b: s.m.wasm, pos: b.code, end: b.end}
	var in instr
	for r.pos < r.end && r.err == nil {
		r.next(&in)
		if !s.special(&r, &in) {
			s.plain(&in)
		}
	}
}

func (s *scanner) plain(in *instr) {
	w := int(in.info.weight)
	if s.run+w > runMax && s.run > 0 {
		s.add(event{kind: evMark, off: uint32(in.off), end: uint32(in.off)})
	}
	s.run += w
}

func (s *scanner) add(e event) {
	e.run = uint16(s.run)
	s.run = 0
	s.events = append(s.events, e)
}

// special adds an event for an instruction that is not plain.
func (s *scanner) special(r *reader, in *instr) bool {
	e := event{weight: in.info.weight, off: uint32(in.off), end: uint32(r.pos), arg: in.x}
	switch in.info.imm {
	case immBlock:
		e.kind = evBlock + eventKind(in.op-opBlock)
		s.open(in.op)
	case immStructured:
		s.structured(in.op, &e)
	case immLabel:
		e.kind = evBr + eventKind(in.op-opBr)
		s.branch(in.x)
	case immLabels:
		s.branchTable(r, in, &e)
	case immFunc:
		if in.x < uint32(s.m.imported.funcs) {
			return false
		}
		e.kind = evCall
	default:
		if !in.op.bulk() {
			return false
		}
		e.kind, e.arg = s.helpers.replace(in)
	}
	s.add(e)
	return true
}

func (s *scanner) open(op opcode) {
	loop := -1
	if n := len(s.blocks); op == opLoop {
		loop = n
	} else if n > 0 {
		loop = s.blocks[n-1].loop
	}
	s.blocks = append(s.blocks, scope{op: op, loop: loop})
}

// branch marks the block that a label leads to, if the branch repeats or leaves a
// loop.
func (s *scanner) branch(label uint32) {
	top := len(s.blocks) - 1
	target := top - int(label)
	if target >= 0 && s.blocks[top].loop >= target {
		s.blocks[target].exit = true
	}
}

func (s *scanner) structured(op opcode, e *event) {
	switch op {
	case opUnreachable:
		e.kind = evStop
	case opReturn:
		e.kind = evReturn
		e.n = uint32(len(s.blocks))
	case opElse:
		e.kind = evElse
	case opEnd:
		e.kind = evEnd
		if n := len(s.blocks); n > 0 {
			top := s.blocks[n-1]
			s.blocks = s.blocks[:n-1]
			e.arg = uint32(top.op)
			if top.exit {
				e.n = 1
			}
		}
	}
}

func (s *scanner) branchTable(r *reader, in *instr, e *event) {
	e.kind, e.arg, e.n = evTable, uint32(len(s.targets)), in.x+1
	for range e.n {
		label := r.u32()
		s.targets = append(s.targets, label)
		s.branch(label)
	}
	e.end = uint32(r.pos)
}
