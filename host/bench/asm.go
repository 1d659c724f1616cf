package main

import (
	"skep/abi"
)

// asm puts a module together byte by byte, so that it can be as hostile as it
// should be. It knows the order of sections and no more.
type asm struct {
	types, funcs, code, exports []byte
	nTypes, nFuncs, nExports    int
	tables, memory              []byte
}

func uleb(v uint64) (out []byte) {
	for ; v >= 0x80; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v))
}

func sleb(v int64) (out []byte) {
	for ; v >= 0x40 || v < -0x40; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v)&0x7f)
}

// sized puts its length before some bytes.
func sized(b []byte) []byte { return append(uleb(uint64(len(b))), b...) }

func cat(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func repeatBytes(n int, b []byte) (out []byte) {
	for range n {
		out = append(out, b...)
	}
	return out
}

const valueI32 = 0x7f

// typ adds a type of so many i32 parameters and results.
func (a *asm) typ(params, results int) int {
	a.types = append(a.types, 0x60)
	a.types = append(a.types, sized(repeatBytes(params, []byte{valueI32}))...)
	a.types = append(a.types, sized(repeatBytes(results, []byte{valueI32}))...)
	a.nTypes++
	return a.nTypes - 1
}

// fn adds a function with so many i32 locals, and returns its index.
func (a *asm) fn(typ, locals int, body ...[]byte) int {
	a.funcs = append(a.funcs, uleb(uint64(typ))...)
	decl := []byte{0}
	if locals > 0 {
		decl = cat([]byte{1}, uleb(uint64(locals)), []byte{valueI32})
	}
	a.code = append(a.code, sized(cat(decl, cat(body...), []byte{0x0b}))...)
	a.nFuncs++
	return a.nFuncs - 1
}

func (a *asm) export(name string, kind byte, index int) {
	a.exports = append(a.exports, cat(sized([]byte(name)), []byte{kind}, uleb(uint64(index)))...)
	a.nExports++
}

// bytes makes the module.
func (a *asm) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, body []byte) { out = append(out, cat([]byte{id}, sized(body))...) }
	list := func(id byte, n int, items []byte) { section(id, cat(uleb(uint64(n)), items)) }
	list(1, a.nTypes, a.types)
	list(3, a.nFuncs, a.funcs)
	if a.tables != nil {
		section(4, a.tables)
	}
	if a.memory != nil {
		section(5, a.memory)
	}
	list(7, a.nExports, a.exports)
	list(10, a.nFuncs, a.code)
	section(0, cat(sized([]byte(abi.DescriptorSection)), []byte(`{"abi":1,"name":"bench","version":"1"}`)))
	return out
}

// agent completes a module whose turn runs body, which leaves a status.
func (a *asm) agent(pages int, body ...[]byte) []byte {
	a.export(abi.MarkerPrefix+"1", 0, a.fn(a.typ(0, 0), 0))
	a.export(abi.ExportTurn, 0, a.fn(a.typ(1, 1), 0, body...))
	a.memory = cat([]byte{1, 0}, uleb(uint64(pages)))
	a.export(abi.ExportMemory, 2, 0)
	return a.bytes()
}

// Instructions.

func konst(v int) []byte   { return append([]byte{0x41}, sleb(int64(v))...) }
func get(i int) []byte     { return append([]byte{0x20}, uleb(uint64(i))...) }
func set(i int) []byte     { return append([]byte{0x21}, uleb(uint64(i))...) }
func callFn(i int) []byte  { return append([]byte{0x10}, uleb(uint64(i))...) }
func op(b ...byte) []byte  { return b }
func br(depth byte) []byte { return []byte{0x0c, depth} }

func loop(body ...[]byte) []byte   { return cat(op(0x03, 0x40), cat(body...), op(0x0b)) }
func block(body ...[]byte) []byte  { return cat(op(0x02, 0x40), cat(body...), op(0x0b)) }
func ifThen(body ...[]byte) []byte { return cat(op(0x04, 0x40), cat(body...), op(0x0b)) }

// brTable jumps to one of some labels, all the same.
func brTable(labels int, depth byte) []byte {
	return cat(op(0x0e), uleb(uint64(labels-1)), repeatBytes(labels, []byte{depth}))
}
