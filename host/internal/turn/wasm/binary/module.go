package binary

// ValType is the type of a value, by its byte in the binary.
type ValType byte

const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

func (t ValType) valid() bool { return t >= V128 && t <= I32 || t.isRef() }
func (t ValType) isRef() bool { return t == FuncRef || t == ExternRef }

func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "unknown"
}

// FuncType is the signature of a function.
type FuncType struct {
	Params, Results []ValType

	wide bool // a v128 is among them
}

// Kind is what an import or an export names.
type Kind byte

const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// Import is one entry of the import section; the field that belongs to its Kind
// is set.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         uint32 // index into Types
	Table        Table
	Memory       Memory
	Global       Global
}

// Export is one entry of the export section. Index counts imports first.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Limits bound a memory (in pages of 64 KiB) or a table (in elements).
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Memory is a linear memory.
type Memory struct{ Limits }

// Table is a table of references.
type Table struct {
	Elem ValType
	Limits
}

// Global is the type of a global.
type Global struct {
	Type    ValType
	Mutable bool
}

// Module is an admitted binary. It keeps the slice it was read from, which must
// not change while the Module is in use; the Module itself is never changed and
// may be read and metered by several goroutines at once.
type Module struct {
	Types     []FuncType
	Imports   []Import
	Functions []uint32 // type of each defined function
	Tables    []Table  // defined ones
	Memories  []Memory // defined ones, at most one
	Globals   []Global // imported and defined ones
	Exports   []Export
	Start     int64 // function index, or -1

	wasm     []byte
	caps     Caps
	sections [sectionCount]span
	funcs    []uint32 // type of each function, imported ones first
	tables   []Table  // imported ones first
	elements uint64   // sum of the tables' minimums
	bodies   []body
	imported imported
	hasMem   bool
	elems    []ValType // type of each element segment
	elemLens []uint32  // its number of elements
	datas    []uint32  // length of each data segment
	customs  []custom
	used     Caps // caps used by bodies and types, as read
}

// imported counts the imports by kind.
type imported struct{ funcs, tables, globals int }

// span is a range of bytes of the binary.
type span struct{ start, end int }

type custom struct {
	name string
	body span
}

// body is a function body that was admitted.
type body struct {
	span         // declarations of locals and instructions
	code  int    // first instruction
	frame uint32 // bytes of stack, 0 for a function that calls nothing
}

// FuncType returns the signature of a function, imported ones counted first.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	if uint64(index) >= uint64(len(m.funcs)) {
		return FuncType{}, false
	}
	return m.Types[m.funcs[index]], true
}

// Export finds an export by name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Custom returns the contents of the custom sections with that name, in order.
// They are parts of the binary and must not be changed.
func (m *Module) Custom(name string) [][]byte {
	var found [][]byte
	for _, c := range m.customs {
		if c.name == name {
			found = append(found, m.wasm[c.body.start:c.body.end:c.body.end])
		}
	}
	return found
}

// MutableGlobals returns the indices of the guest's mutable globals. Meter
// exports the i-th of them as GlobalPrefix followed by i in decimal.
func (m *Module) MutableGlobals() []uint32 {
	var found []uint32
	for i, g := range m.Globals {
		if g.Mutable {
			found = append(found, uint32(i))
		}
	}
	return found
}
