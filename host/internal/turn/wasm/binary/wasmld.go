package binary

// Defaults of wasm-ld.
const (
	lldDataBase = 1024     // where data begins
	lldStack    = 64 << 10 // size of the stack, which lies above the data
	lldAlign    = 16       // of the stack's top
)

// layoutMark recognises C and C++ of clang by the memory layout of its linker, where
// all names are removed. Other compilers with the same linker (Rust, TinyGo, Zig) put the
// stack first, so their data begins above it.
func (m *Module) layoutMark() Language {
	top, ok := m.stackTop()
	if !ok || !m.belowStack(top) || !m.fixedTable() {
		return Language{}
	}
	name := "C or C++ (clang)"
	if len(m.Custom("name")) == 0 {
		name += ", stripped"
	}
	return Language{Name: name, Mark: "its memory is laid out as by wasm-ld"}
}

// stackTop is the address where the stack begins: the value of the first global, the
// only mutable one. Symbols such as __heap_base come after it.
func (m *Module) stackTop() (top uint32, ok bool) {
	if m.imported.globals > 0 || len(m.Globals) == 0 || len(m.MutableGlobals()) != 1 {
		return 0, false
	}
	for _, g := range m.Globals {
		if g.Type != I32 {
			return 0, false
		}
	}
	span := m.sections[secGlobal]
	r := reader{b: m.wasm, pos: span.start, end: span.end}
	r.u32() // how many there are
	r.valType()
	if mutable := r.byte(); mutable != 1 || opcode(r.byte()) != opI32Const {
		return 0, false
	}
	top = uint32(r.signed(32))
	return top, r.err == nil && top%lldAlign == 0
}

// belowStack reports whether data begins where wasm-ld puts it and ends below
// the stack. Without data the stack has to be of the usual size.
func (m *Module) belowStack(top uint32) bool {
	if len(m.Memories) != 1 || uint64(m.Memories[0].Min)<<16 < uint64(top) {
		return false
	}
	first, end, any := uint64(top), uint64(0), false
	m.eachData(func(s dataSegment) bool {
		if any = any || s.active; s.active {
			first = min(first, uint64(s.offset))
			end = max(end, uint64(s.offset)+uint64(len(s.bytes)))
		}
		return true
	})
	if !any {
		return top == lldDataBase+lldStack
	}
	return first == lldDataBase && end < uint64(top)
}

// fixedTable reports whether there is the one table that wasm-ld makes: it never
// grows, and its first element is unused.
func (m *Module) fixedTable() bool {
	if m.imported.tables > 0 || len(m.Tables) != 1 {
		return false
	}
	t := m.Tables[0]
	return t.HasMax && t.Min == t.Max && t.Min > 0
}
