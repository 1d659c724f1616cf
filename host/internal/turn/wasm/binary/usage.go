package binary

import "math"

// InspectionCaps returns caps for inspecting a module that [DefaultCaps] refuse.
// Under them [Admit] takes a few dozen times the binary's memory; a module that only
// they admit must not be metered.
func InspectionCaps() Caps {
	const most = math.MaxInt32
	return Caps{
		Size: 256 << 20, Functions: most, Body: most, Locals: most, Nesting: 1 << 20, BrTable: most, Types: most,
		Imports: most, Exports: most, Globals: most, DataSegments: most, ElementSegments: most, Tables: most,
		TableElements: math.MaxInt64, CompileWork: math.MaxInt64,
	}
}

// Usage returns what the module needs of each cap: the largest value where a cap
// holds for one function or type, the number for the others.
func (m *Module) Usage() Caps {
	u := m.used
	u.Size = int64(len(m.wasm))
	u.Functions = int64(len(m.Functions))
	u.Types = int64(len(m.Types))
	u.Imports = int64(len(m.Imports))
	u.Exports = int64(len(m.Exports))
	u.Globals = int64(len(m.Globals))
	u.DataSegments = int64(len(m.datas))
	u.ElementSegments = int64(len(m.elems))
	u.Tables = int64(len(m.tables))
	u.TableElements = int64(m.elements)
	return u
}

// NamedCap is a cap under its key.
type NamedCap struct {
	Key   string // under [limits.module]
	Value int64
}

// Named lists the caps with their keys, in the order of the fields.
func (c Caps) Named() []NamedCap {
	return []NamedCap{
		{"size", c.Size}, {"functions", c.Functions}, {"body", c.Body}, {"locals", c.Locals},
		{"nesting", c.Nesting}, {"br_table", c.BrTable}, {"types", c.Types}, {"imports", c.Imports},
		{"exports", c.Exports}, {"globals", c.Globals}, {"data_segments", c.DataSegments},
		{"element_segments", c.ElementSegments}, {"tables", c.Tables}, {"table_elements", c.TableElements},
		{"compile_work", c.CompileWork},
	}
}

// CodeSize is the bytes of all function bodies.
func (m *Module) CodeSize() int {
	size := 0
	for _, b := range m.bodies {
		size += b.end - b.start
	}
	return size
}
