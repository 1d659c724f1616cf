package binary

import "fmt"

// stateScan is how the code of a module changes state other than its memory and its
// numeric globals.
type stateScan struct {
	hiddenState string // the first reason found, or empty
	segments    uint32 // data segments up to the last one that an instruction names
}

// scanState reads declarations and code. It is another pass over the code, but most
// bodies are skipped after a search for two bytes.
func (m *Module) scanState() *stateScan {
	s := &stateScan{hiddenState: m.declaredState()}
	for i := range m.bodies {
		m.scanBody(s, i)
	}
	return s
}

// declaredState finds hidden state in declarations: imports that are shared with
// other instances, and globals that the engine's interface cannot set.
func (m *Module) declaredState() string {
	for _, im := range m.Imports {
		if im.Kind != KindFunc {
			return fmt.Sprintf("it imports %s.%s, which is no function", im.Module, im.Name)
		}
	}
	for i, g := range m.Globals {
		if g.Mutable && (g.Type.isRef() || g.Type == V128) {
			return fmt.Sprintf("global %d is a mutable %s", i, g.Type)
		}
	}
	return ""
}

func (m *Module) scanBody(s *stateScan, i int) {
	b := &m.bodies[i]
	if !mayTouchTables(m.wasm[b.code:b.end]) {
		return
	}
	r := reader{b: m.wasm, pos: b.code, end: b.end}
	var in instr
	for r.pos < r.end && r.err == nil {
		r.next(&in)
		if in.op == opMemoryInit || in.op == opDataDrop {
			s.segments = max(s.segments, in.x+1)
		}
		if what := in.op.hiddenState(); what != "" && s.hiddenState == "" {
			s.hiddenState = fmt.Sprintf("function %d has a %s", m.imported.funcs+i, what)
		}
		if in.op == opBrTable {
			for range in.x + 1 {
				r.u32()
			}
		}
	}
}

// mayTouchTables reports whether a body holds a byte with which an instruction begins
// that scanBody searches for.
func mayTouchTables(code []byte) bool {
	for _, b := range code {
		if b == byte(opTableSet) || b == prefixMisc {
			return true
		}
	}
	return false
}

// hiddenState names an instruction that changes tables or segments.
func (op opcode) hiddenState() string {
	switch op {
	case opTableSet:
		return "table.set"
	case opTableGrow:
		return "table.grow"
	case opTableFill:
		return "table.fill"
	case opTableCopy:
		return "table.copy"
	case opTableInit:
		return "table.init"
	case opDataDrop:
		return "data.drop"
	case opElemDrop:
		return "elem.drop"
	}
	return ""
}
