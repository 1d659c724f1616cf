package binary

import (
	"errors"
	"math"
	"strconv"
)

const (
	addedFuncs   = 2 // imports: tick and overflow, behind the guest's own
	addedGlobals = 2 // slice and stack, behind the guest's own
)

// Options are the choices of Meter; the zero value is the usual one.
type Options struct {
	Stack int64 // budget in bytes; 0 is DefaultStack
	Slice int64 // units at instantiation; with 0 the first charge calls tick
}

// Meter writes the module with counters of fuel and stack. Function indices of
// the guest's own functions move up by two; types, tables, memories, globals and
// segments keep theirs. Custom sections are dropped. The same module and options
// give the same bytes.
func (m *Module) Meter(o Options) ([]byte, error) {
	w, err := m.meter(o, nil)
	if err != nil {
		return nil, err
	}
	return w.out, nil
}

// meter runs the rewriter; detach is nil for a module that keeps its data.
func (m *Module) meter(o Options, detach *detachOptions) (*rewriter, error) {
	if o.Stack == 0 {
		o.Stack = DefaultStack
	}
	if o.Stack < 0 || o.Slice < 0 {
		return nil, errors.New("binary: a stack or slice below zero")
	}
	w := m.newRewriter(o)
	w.detach = detach
	w.codeSection()
	w.module()
	if len(w.out) > math.MaxInt32 {
		return nil, errors.New("binary: the metered module is larger than 2 GiB")
	}
	return w, nil
}

// rewriter writes the sections of one module. The code comes first because it
// determines the types and helpers in the other sections.
type rewriter struct {
	m       *Module
	o       Options
	detach  *detachOptions // nil: data and start function stay
	types   *typeTable
	helpers *helpers
	emit    *emitter
	code    buf
	out     buf
}

func (m *Module) newRewriter(o Options) *rewriter {
	w := &rewriter{m: m, o: o, types: newTypeTable(m.Types)}
	w.helpers = &helpers{
		m: m, types: w.types, index: map[helperKey]uint32{},
		first: uint32(len(m.funcs)) + addedFuncs,
	}
	w.emit = &emitter{
		m: m, types: w.types, helpers: w.helpers,
		tick: uint32(m.imported.funcs), overflow: uint32(m.imported.funcs) + 1,
		slice: uint32(len(m.Globals)), stack: uint32(len(m.Globals)) + 1,
	}
	w.helpers.emit = w.emit
	return w
}

// shift gives a function its index in the metered module.
func (m *Module) shift(i uint32) uint32 {
	if i < uint32(m.imported.funcs) {
		return i
	}
	return i + addedFuncs
}

// codeSection rewrites all bodies. Function module writes their number, because the
// number of helpers is known only afterwards.
func (w *rewriter) codeSection() {
	s := &scanner{m: w.m, helpers: w.helpers}
	var c chargePlanner
	var one buf
	w.code = make(buf, 0, len(w.m.wasm)+len(w.m.wasm)/4)
	for i := range w.m.bodies {
		b := &w.m.bodies[i]
		s.scan(b)
		entry := c.planCharges(s.events, s.targets)
		one = one[:0]
		w.emit.function(&one, b, &w.m.Types[w.m.Functions[i]], s.events, entry)
		w.code.u32(uint32(len(one)))
		w.code.raw(one)
	}
	w.helperCode()
}

func (w *rewriter) helperCode() {
	for _, h := range w.helpers.list {
		w.code.u32(uint32(len(h.body)))
		w.code.raw(h.body)
	}
}

func (w *rewriter) module() {
	tickType := w.types.indexOf(nil, nil) // before the types are written
	w.out = make(buf, 0, len(w.code)+len(w.m.wasm)/2)
	w.out.raw([]byte("\x00asm\x01\x00\x00\x00"))
	w.section(secType, w.typeSection())
	w.section(secImport, w.importSection(tickType))
	w.section(secFunction, w.functionSection())
	w.section(secTable, w.tableSection())
	w.section(secMemory, w.copied(secMemory))
	w.section(secGlobal, w.globalSection())
	w.section(secExport, w.exportSection())
	w.section(secStart, w.startSection())
	w.section(secElement, w.elementSection())
	w.section(secDataCount, w.dataCountSection())
	w.section(secCode, w.prefixed(len(w.m.bodies)+len(w.helpers.list), w.code))
	w.section(secData, w.dataSection())
}

// section writes a section unless it is empty.
func (w *rewriter) section(id byte, content []byte) {
	if len(content) == 0 {
		return
	}
	w.out.byte(id)
	w.out.u32(uint32(len(content)))
	w.out.raw(content)
}

func (w *rewriter) copied(id int) []byte {
	s := w.m.sections[id]
	return w.m.wasm[s.start:s.end]
}

// prefixed writes a vector: the count, then its entries. Without entries it is
// empty, and so is its section.
func (w *rewriter) prefixed(n int, entries []byte) []byte {
	if n == 0 {
		return nil
	}
	out := make(buf, 0, len(entries)+5)
	out.u32(uint32(n))
	out.raw(entries)
	return out
}

// entries returns the entries of the guest's vector in a section, as they are.
func (w *rewriter) entries(id int) []byte {
	s := w.m.sections[id]
	r := reader{b: w.m.wasm, pos: s.start, end: s.end}
	if s.start != s.end {
		r.u32()
	}
	return w.m.wasm[r.pos:s.end]
}

func (w *rewriter) typeSection() []byte {
	out := buf(append([]byte(nil), w.entries(secType)...))
	for _, t := range w.types.added {
		out.byte(0x60)
		for _, list := range [][]ValType{t.Params, t.Results} {
			out.u32(uint32(len(list)))
			for _, v := range list {
				out.byte(byte(v))
			}
		}
	}
	return w.prefixed(len(w.m.Types)+len(w.types.added), out)
}

func (w *rewriter) importSection(tickType uint32) []byte {
	out := buf(append([]byte(nil), w.entries(secImport)...))
	for _, name := range []string{HostTick, HostOverflow} {
		out.name(HostModule)
		out.name(name)
		out.byte(byte(KindFunc))
		out.u32(tickType)
	}
	return w.prefixed(len(w.m.Imports)+addedFuncs, out)
}

func (w *rewriter) functionSection() []byte {
	out := buf(append([]byte(nil), w.entries(secFunction)...))
	for _, h := range w.helpers.list {
		out.u32(h.typ)
	}
	return w.prefixed(len(w.m.Functions)+len(w.helpers.list), out)
}

func (w *rewriter) exportSection() []byte {
	var out buf
	export := func(name string, kind Kind, index uint32) {
		out.name(name)
		out.byte(byte(kind))
		out.u32(index)
	}
	for _, e := range w.m.Exports {
		if e.Kind == KindFunc {
			e.Index = w.m.shift(e.Index)
		}
		export(e.Name, e.Kind, e.Index)
	}
	export(GlobalSlice, KindGlobal, w.emit.slice)
	export(GlobalStack, KindGlobal, w.emit.stack)
	mutable := w.m.MutableGlobals()
	for i, g := range mutable {
		export(GlobalPrefix+strconv.Itoa(i), KindGlobal, g)
	}
	n := len(w.m.Exports) + addedGlobals + len(mutable)
	if w.detach != nil && w.m.Start >= 0 {
		export(ExportStart, KindFunc, w.m.shift(uint32(w.m.Start)))
		n++
	}
	return w.prefixed(n, out)
}

func (w *rewriter) startSection() []byte {
	if w.m.Start < 0 || w.detach != nil {
		return nil
	}
	var out buf
	out.u32(w.m.shift(uint32(w.m.Start)))
	return out
}
