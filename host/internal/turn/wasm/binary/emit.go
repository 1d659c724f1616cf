package binary

// emitter writes one body after another from their events. Its indices count in the
// metered module.
type emitter struct {
	m              *Module
	tick, overflow uint32 // functions
	slice, stack   uint32 // globals
	helpers        *helpers
	types          *typeTable
	charges        int // written so far
}

// charge writes the charge of a fixed number of units.
func (e *emitter) charge(w *buf, units uint32) {
	if units == 0 {
		return
	}
	e.charges++
	e.addToGlobal(w, e.slice, -int64(units))
	e.tickIfNegative(w)
}

// addToGlobal adds a constant to one of the two counters.
func (e *emitter) addToGlobal(w *buf, global uint32, n int64) {
	w.with(opGlobalGet, global)
	w.i64(max(n, -n))
	if n < 0 {
		w.op(opI64Sub)
	} else {
		w.op(opI64Add)
	}
	w.with(opGlobalSet, global)
}

// unlessBelowZero turns an i64 on the stack into a branch: the code written
// between it and the end runs when the number is negative. The usual path is the
// *first* arm, and empty: in the engine the code after an if starts with the
// registers of the first arm, and a call leaves no values in registers.
func (w *buf) unlessBelowZero() {
	w.i64(0)
	w.op(opI64GeS)
	w.byte(byte(opIf), emptyBlock, byte(opElse))
}

func (e *emitter) tickIfNegative(w *buf) {
	w.with(opGlobalGet, e.slice)
	w.unlessBelowZero()
	w.with(opCall, e.tick)
	w.op(opEnd)
}

// prologue takes the frame and the units of the entry. Where both are due, one
// comparison serves both: every call executes it.
func (e *emitter) prologue(w *buf, frame, units uint32) {
	if frame == 0 {
		e.charge(w, units)
		return
	}
	e.addToGlobal(w, e.stack, -int64(frame))
	w.with(opGlobalGet, e.stack)
	if units != 0 {
		e.charges++
		e.addToGlobal(w, e.slice, -int64(units))
		w.with(opGlobalGet, e.slice)
		w.op(opI64Or)
	}
	w.unlessBelowZero()
	w.with(opCall, e.helpers.function(helperKey{op: helperGuard}))
	w.op(opEnd)
}

// function writes a body. One with a frame is wrapped into a block, which takes
// the place of the function's own label, so that every exit passes the point
// where the frame is returned.
func (e *emitter) function(w *buf, b *body, t *FuncType, events []event, entry uint32) {
	w.raw(e.m.wasm[b.start:b.code])
	e.prologue(w, b.frame, entry)
	if b.frame == 0 {
		e.code(w, b, events)
		return
	}
	w.op(opBlock)
	switch len(t.Results) {
	case 0:
		w.byte(emptyBlock)
	case 1:
		w.byte(byte(t.Results[0]))
	default:
		w.s64(int64(e.types.indexOf(nil, t.Results)))
	}
	e.code(w, b, events)
	e.addToGlobal(w, e.stack, int64(b.frame))
	w.op(opEnd)
}

// code copies the instructions of a body and changes them at its events.
func (e *emitter) code(w *buf, b *body, events []event) {
	done := b.code
	for i := range events {
		ev := &events[i]
		w.raw(e.m.wasm[done:ev.off])
		done = int(ev.end)
		after := ev.kind == evLoop || ev.kind == evEnd
		if !after {
			e.charge(w, ev.cost)
		}
		e.instruction(w, ev, b.frame != 0)
		if after {
			e.charge(w, ev.cost)
		}
	}
	w.raw(e.m.wasm[done:b.end])
}

func (e *emitter) instruction(w *buf, ev *event, wrapped bool) {
	switch {
	case ev.kind == evCall:
		w.with(opcode(e.m.wasm[ev.off]), ev.arg+addedFuncs) // call or ref.func
	case ev.kind == evHelper:
		w.with(opCall, ev.arg)
	case ev.kind == evPaid:
		w.with(opCall, ev.arg)
		w.raw(e.m.wasm[ev.off:ev.end])
	case ev.kind == evReturn && wrapped:
		w.with(opBr, ev.n)
	default:
		w.raw(e.m.wasm[ev.off:ev.end])
	}
}
