package binary

import (
	"fmt"
	"strings"
)

func (p *parser) customSection() {
	name := p.name()
	body := span{p.pos, p.end}
	p.pos = p.end
	if len(p.m.customs) == maxCustom {
		p.fail(body.start, "more than %d custom sections", maxCustom)
	}
	p.m.customs = append(p.m.customs, custom{name, body})
}

func (p *parser) typeSection() {
	off := p.pos
	n := p.count("types", 3)
	p.cap("types", uint64(n), p.caps.Types, "", off)
	if p.err != nil {
		return
	}
	p.m.Types = make([]FuncType, 0, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.Types = append(p.m.Types, p.funcType(i))
	}
}

func (p *parser) funcType(i uint32) (t FuncType) {
	off := p.pos
	if form := p.byte(); form != 0x60 {
		p.fail(off, "type form %#02x is not admitted", form)
	}
	t.Params = p.valTypes(i)
	t.Results = p.valTypes(i)
	for _, v := range t.Params {
		t.wide = t.wide || v == V128
	}
	for _, v := range t.Results {
		t.wide = t.wide || v == V128
	}
	return t
}

// valTypes reads the parameters or results of type i. Every function of the type
// takes time for each, so the cap for locals bounds them.
func (p *parser) valTypes(i uint32) []ValType {
	off := p.pos
	n := p.count("value types", 1)
	p.m.used.Locals = max(p.m.used.Locals, int64(n))
	if int64(n) > p.caps.Locals {
		p.cap("locals", uint64(n), p.caps.Locals, fmt.Sprintf("type %d", i), off)
	}
	if p.err != nil || n == 0 {
		return nil
	}
	ts := make([]ValType, n)
	for j := range ts {
		ts[j] = p.valType()
	}
	return ts
}

func (r *reader) valType() ValType {
	off := r.pos
	t := ValType(r.byte())
	if !t.valid() {
		r.fail(off, "value type %#02x is not admitted", byte(t))
	}
	return t
}

func (r *reader) refType() ValType {
	off := r.pos
	t := ValType(r.byte())
	if !t.isRef() {
		r.fail(off, "reference type %#02x is not admitted", byte(t))
	}
	return t
}

// Flags of limits; a maximum alone is admitted. See
// https://webassembly.github.io/spec/core/binary/types.html#limits.
const (
	flagMax      = 1
	flagShared   = 2
	flag64       = 4
	flagPageSize = 8
)

// limitsFeature is the feature that flags of limits need.
func limitsFeature(flags byte) string {
	switch {
	case flags&^(flagMax|flagShared|flag64|flagPageSize) != 0:
		return fmt.Sprintf("an unknown feature (limits with flags %#02x)", flags)
	case flags&flagPageSize != 0:
		return "pages of a size of its own (custom-page-sizes)"
	case flags&flag64 != 0:
		return "64-bit addresses (memory64); build for wasm32"
	}
	return "sharing between threads (threads); build without threads"
}

// limits reads the bounds of a memory or table.
func (p *parser) limits() (l Limits) {
	off := p.pos
	flags := p.byte()
	if flags > flagMax {
		p.fail(off, "not admitted: %s", limitsFeature(flags))
	}
	l.Min = p.u32()
	if flags == flagMax {
		l.HasMax = true
		l.Max = p.u32()
		if l.Max < l.Min {
			p.fail(off, "maximum %d is below minimum %d", l.Max, l.Min)
		}
	}
	return l
}

const maxPages = 1 << 16

func (p *parser) memory() Memory {
	off := p.pos
	l := p.limits()
	if l.Min > maxPages || l.Max > maxPages {
		p.fail(off, "memory of more than %d pages", maxPages)
	}
	if p.m.hasMem {
		p.fail(off, "more than one memory")
	}
	p.m.hasMem = true
	return Memory{l}
}

// table reads a table and holds the sum of all minimums to the cap.
func (p *parser) table() Table {
	off := p.pos
	t := Table{Elem: p.refType()}
	t.Limits = p.limits()
	p.m.tables = append(p.m.tables, t)
	p.m.elements += uint64(t.Min)
	p.cap("tables", uint64(len(p.m.tables)), p.caps.Tables, "", off)
	p.cap("table_elements", p.m.elements, p.caps.TableElements, "", off)
	return t
}

func (p *parser) globalType() (g Global) {
	g.Type = p.valType()
	off := p.pos
	mut := p.byte()
	if mut > 1 {
		p.fail(off, "mutability %#02x is not admitted", mut)
	}
	g.Mutable = mut == 1
	return g
}

func (p *parser) typeIndex() uint32 {
	off := p.pos
	i := p.u32()
	if uint64(i) >= uint64(len(p.m.Types)) {
		p.fail(off, "type %d of %d", i, len(p.m.Types))
		return 0
	}
	return i
}

func (p *parser) importSection() {
	off := p.pos
	n := p.count("imports", 4)
	p.cap("imports", uint64(n), p.caps.Imports, "", off)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.Imports = append(p.m.Imports, p.importEntry())
	}
	p.m.imported.globals = len(p.m.Globals)
	p.cap("globals", uint64(len(p.m.Globals)), p.caps.Globals, "", off)
}

func (p *parser) importEntry() Import {
	off := p.pos
	im := Import{Module: p.name(), Name: p.name()}
	p.reserved(im.Module, off)
	p.reserved(im.Name, off)
	im.Kind = Kind(p.byte())
	switch im.Kind {
	case KindFunc:
		im.Type = p.typeIndex()
		p.m.funcs = append(p.m.funcs, im.Type)
		p.m.imported.funcs++
	case KindTable:
		im.Table = p.table()
		p.m.imported.tables++
	case KindMemory:
		im.Memory = p.memory()
	case KindGlobal:
		im.Global = p.globalType()
		p.m.Globals = append(p.m.Globals, im.Global)
	default:
		p.fail(off, "import of kind %d is not admitted", im.Kind)
	}
	return im
}

func (p *parser) reserved(name string, off int) {
	if strings.HasPrefix(name, ReservedPrefix) {
		p.fail(off, "name %q: the prefix %s belongs to the host", name, ReservedPrefix)
	}
}

func (p *parser) functionSection() {
	off := p.pos
	n := p.count("functions", 1)
	p.cap("functions", uint64(n), p.caps.Functions, "", off)
	if p.err != nil {
		return
	}
	p.m.Functions = make([]uint32, 0, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.Functions = append(p.m.Functions, p.typeIndex())
	}
	p.m.funcs = append(p.m.funcs, p.m.Functions...)
}

func (p *parser) tableSection() {
	n := p.count("tables", 3)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.Tables = append(p.m.Tables, p.table())
	}
}

func (p *parser) memorySection() {
	n := p.count("memories", 2)
	for i := uint32(0); i < n && p.err == nil; i++ {
		p.m.Memories = append(p.m.Memories, p.memory())
	}
}

func (p *parser) globalSection() {
	off := p.pos
	n := p.count("globals", 5)
	p.cap("globals", uint64(len(p.m.Globals))+uint64(n), p.caps.Globals, "", off)
	for i := uint32(0); i < n && p.err == nil; i++ {
		g := p.globalType()
		p.constExpr(g.Type)
		p.m.Globals = append(p.m.Globals, g)
	}
}

func (p *parser) exportSection() {
	off := p.pos
	n := p.count("exports", 3)
	p.cap("exports", uint64(n), p.caps.Exports, "", off)
	if p.err != nil {
		return
	}
	p.m.Exports = make([]Export, 0, n)
	seen := make(map[string]bool, n)
	for i := uint32(0); i < n && p.err == nil; i++ {
		off := p.pos
		e := Export{Name: p.name(), Kind: Kind(p.byte()), Index: p.u32()}
		p.reserved(e.Name, off)
		if seen[e.Name] {
			p.fail(off, "export %q is repeated", e.Name)
		}
		seen[e.Name] = true
		p.exportIndex(e, off)
		p.m.Exports = append(p.m.Exports, e)
	}
}

func (p *parser) exportIndex(e Export, off int) {
	var n int
	switch e.Kind {
	case KindFunc:
		n = len(p.m.funcs)
	case KindTable:
		n = len(p.m.tables)
	case KindMemory:
		if p.m.hasMem {
			n = 1
		}
	case KindGlobal:
		n = len(p.m.Globals)
	default:
		p.fail(off, "export of kind %d is not admitted", e.Kind)
	}
	if uint64(e.Index) >= uint64(n) {
		p.fail(off, "export %q names entry %d of %d", e.Name, e.Index, n)
	}
}

func (p *parser) startSection() {
	off := p.pos
	i := p.u32()
	t, ok := p.m.FuncType(i)
	if !ok || len(t.Params)+len(t.Results) != 0 {
		p.fail(off, "start function %d does not exist or is not () -> ()", i)
	}
	p.m.Start = int64(i)
}
