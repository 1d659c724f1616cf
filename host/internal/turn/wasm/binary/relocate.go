package binary

import (
	"cmp"
	"slices"
)

// The sections below hold function indices or limits among other fields: they are
// read again and copied piece by piece.

// copier copies from a section of the guest and changes function indices.
type copier struct {
	reader
	m    *Module
	out  buf
	done int // everything before is copied
}

func (w *rewriter) copier(id int) *copier {
	s := w.m.sections[id]
	c := &copier{reader: reader{b: w.m.wasm, pos: s.start, end: s.end}, m: w.m, done: s.start}
	c.out = make(buf, 0, s.end-s.start+s.end/8)
	return c
}

// function copies up to the function index that comes next, and shifts it.
func (c *copier) function() {
	c.out.raw(c.b[c.done:c.pos])
	c.out.u32(c.m.shift(c.u32()))
	c.done = c.pos
}

func (c *copier) rest() []byte {
	c.out.raw(c.b[c.done:c.end])
	c.done = c.end
	return c.out
}

// constExpr passes an initialiser; the only function index in one follows the
// opcode ref.func, and nothing follows it but end.
func (c *copier) constExpr() {
	start := c.pos
	var in instr
	c.next(&in)
	if in.op == opRefFunc {
		c.pos = start + 1
		c.function()
	}
	c.byte() // end
}

// tableSection gives every table a maximum, so that all together cannot outgrow
// the cap. Imported tables are the host's own and keep theirs.
func (w *rewriter) tableSection() []byte {
	var out buf
	for i, room := range w.tableRooms() {
		t := w.m.Tables[i]
		out.byte(byte(t.Elem), 1)
		out.u32(t.Min)
		out.u32(t.Min + room)
	}
	return w.prefixed(len(w.m.Tables), out)
}

// tableRooms shares what the cap leaves above all minimums: each table may grow
// to its own maximum or by an equal share; the others share the rest of a smaller
// maximum.
func (w *rewriter) tableRooms() []uint32 {
	rooms := make([]uint32, len(w.m.Tables))
	order := make([]int, len(rooms))
	for i, t := range w.m.Tables {
		rooms[i] = ^uint32(0) - t.Min
		if t.HasMax {
			rooms[i] = t.Max - t.Min
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rooms[a], rooms[b]) })
	spare := uint64(max(w.m.caps.TableElements, 0)) - w.m.elements
	for done, i := range order {
		share := spare / uint64(len(order)-done)
		rooms[i] = uint32(min(share, uint64(rooms[i])))
		spare -= uint64(rooms[i])
	}
	return rooms
}

func (w *rewriter) globalSection() []byte {
	defined := len(w.m.Globals) - w.m.imported.globals
	c := w.copier(secGlobal)
	if c.left() > 0 {
		c.u32()
		c.done = c.pos
	}
	for range defined {
		c.skip(2) // type and mutability
		c.constExpr()
	}
	out := buf(c.rest())
	for _, v := range []int64{w.o.Slice, w.o.Stack} {
		out.byte(byte(I64), 1)
		out.i64(v)
		out.op(opEnd)
	}
	return w.prefixed(defined+addedGlobals, out)
}

func (w *rewriter) elementSection() []byte {
	c := w.copier(secElement)
	if c.left() == 0 {
		return nil
	}
	for range c.u32() {
		c.elementSegment()
	}
	return c.rest()
}

func (c *copier) elementSegment() {
	flags := c.u32()
	if flags&elemPassive == 0 {
		if flags&elemExplicit != 0 {
			c.u32()
		}
		c.constExpr()
	}
	if flags&(elemPassive|elemExplicit) != 0 {
		c.byte() // kind or type
	}
	for range c.u32() {
		if flags&elemExprs != 0 {
			c.constExpr()
		} else {
			c.function()
		}
	}
}
