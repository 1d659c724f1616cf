package wasmbin

import "fmt"

// survey is what the code of a module does to state other than its memory and
// its numeric globals.
type survey struct {
	restless string // the first reason found, or empty
	segments uint32 // data segments up to the last one that an instruction names
}

// survey reads declarations and code. It is one more pass over the code, but
// most bodies are passed over by looking for two bytes.
func (m *Module) survey() *survey {
	s := &survey{restless: m.declaredRestless()}
	for i := range m.bodies {
		m.surveyBody(s, i)
	}
	return s
}

// declaredRestless finds state that shows in declarations: what is shared with
// others, and globals that the engine's interface cannot set.
func (m *Module) declaredRestless() string {
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

func (m *Module) surveyBody(s *survey, i int) {
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
		if what := in.op.restless(); what != "" && s.restless == "" {
			s.restless = fmt.Sprintf("function %d has a %s", m.imported.funcs+i, what)
		}
		if in.op == opBrTable {
			for range in.x + 1 {
				r.u32()
			}
		}
	}
}

// mayTouchTables reports whether a body holds a byte with which one of the
// instructions begins that surveyBody looks for.
func mayTouchTables(code []byte) bool {
	for _, b := range code {
		if b == byte(opTableSet) || b == prefixMisc {
			return true
		}
	}
	return false
}

// restless names an instruction that changes tables or segments.
func (op opcode) restless() string {
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
