package wasm

import "slices"

// builder assembles a module by hand, so that a hostile guest can be exactly as
// hostile as its test says. Types are written as strings: i is i32, I is i64.
type builder struct {
	types, imports, funcs, globals, exports, elems, code, data, customs [][]byte
	memory, table                                                       []byte
	startFunc                                                           int
	counted                                                             bool // how many data segments there are
}

func newBuilder() *builder { return &builder{startFunc: -1} }

// uleb encodes an unsigned number, sleb a signed one.
func uleb(v uint64) []byte {
	var out []byte
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

func sleb(v int64) []byte {
	var out []byte
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func text(s string) []byte { return append(uleb(uint64(len(s))), s...) }

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func valueList(types string) []byte {
	out := uleb(uint64(len(types)))
	for _, t := range types {
		out = append(out, map[rune]byte{'i': 0x7f, 'I': 0x7e, 'f': 0x7d}[t])
	}
	return out
}

func (b *builder) typeOf(params, results string) []byte {
	b.types = append(b.types, join([]byte{0x60}, valueList(params), valueList(results)))
	return uleb(uint64(len(b.types) - 1))
}

// importFunc must come before the first fn. It returns the function's index.
func (b *builder) importFunc(module, name, params, results string) int {
	b.imports = append(b.imports, join(text(module), text(name), []byte{0}, b.typeOf(params, results)))
	return len(b.imports) - 1
}

// fn adds a function, exported unless name is empty, and returns its index.
func (b *builder) fn(name, params, results, locals string, body ...[]byte) int {
	index := len(b.imports) + len(b.funcs)
	b.funcs = append(b.funcs, b.typeOf(params, results))
	decl := uleb(uint64(len(locals)))
	for _, t := range locals {
		decl = append(decl, 1, map[rune]byte{'i': 0x7f, 'I': 0x7e}[t])
	}
	whole := join(decl, join(body...), []byte{0x0b})
	b.code = append(b.code, join(uleb(uint64(len(whole))), whole))
	if name != "" {
		b.export(name, 0, index)
	}
	return index
}

func (b *builder) export(name string, kind byte, index int) {
	b.exports = append(b.exports, join(text(name), []byte{kind}, uleb(uint64(index))))
}

func (b *builder) mem(pages int) {
	b.memory = join([]byte{1, 0}, uleb(uint64(pages)))
	b.export("memory", 2, 0)
}

func (b *builder) segment(offset int, content string) {
	b.data = append(b.data, join([]byte{0}, i32c(int64(offset)), []byte{0x0b}, text(content)))
}

// passive adds a segment that only memory.init reads.
func (b *builder) passive(content string) {
	b.data = append(b.data, join([]byte{1}, text(content)))
	b.counted = true
}

// global adds a mutable global and returns its index: i is i32, I is i64.
func (b *builder) global(kind rune, init int64) int {
	typ, value := byte(0x7f), i32c(init)
	if kind == 'I' {
		typ, value = 0x7e, i64c(init)
	}
	b.globals = append(b.globals, join([]byte{typ, 1}, value, op(0x0b)))
	return len(b.globals) - 1
}

func (b *builder) custom(name, content string) {
	body := join(text(name), []byte(content))
	b.customs = append(b.customs, join([]byte{0}, uleb(uint64(len(body))), body))
}

func (b *builder) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items [][]byte) {
		if len(items) == 0 {
			return
		}
		body := join(uleb(uint64(len(items))), join(items...))
		out = append(out, join([]byte{id}, uleb(uint64(len(body))), body)...)
	}
	raw := func(id byte, body []byte) {
		if body != nil {
			out = append(out, join([]byte{id}, uleb(uint64(len(body))), body)...)
		}
	}
	section(1, b.types)
	section(2, b.imports)
	section(3, b.funcs)
	raw(4, b.table)
	raw(5, b.memory)
	section(6, b.globals)
	section(7, b.exports)
	if b.startFunc >= 0 {
		raw(8, uleb(uint64(b.startFunc)))
	}
	section(9, b.elems)
	if b.counted {
		raw(12, uleb(uint64(len(b.data))))
	}
	section(10, b.code)
	section(11, b.data)
	return append(out, join(b.customs...)...)
}

// Instructions.

func i32c(v int64) []byte     { return append([]byte{0x41}, sleb(int64(int32(v)))...) }
func i64c(v int64) []byte     { return append([]byte{0x42}, sleb(v)...) }
func callf(i int) []byte      { return append([]byte{0x10}, uleb(uint64(i))...) }
func get(i int) []byte        { return append([]byte{0x20}, uleb(uint64(i))...) }
func set(i int) []byte        { return append([]byte{0x21}, uleb(uint64(i))...) }
func gset(i int) []byte       { return append([]byte{0x24}, uleb(uint64(i))...) }
func op(codes ...byte) []byte { return codes }
func br(depth byte) []byte    { return []byte{0x0c, depth} }
func brIf(depth byte) []byte  { return []byte{0x0d, depth} }
func load32(off byte) []byte  { return []byte{0x28, 2, off} }
func store32(off byte) []byte { return []byte{0x36, 2, off} }
func store64(off byte) []byte { return []byte{0x37, 3, off} }
func forever() []byte         { return []byte{0x03, 0x40, 0x0c, 0, 0x0b} }
func loop(body []byte) []byte { return join([]byte{0x03, 0x40}, body, []byte{0x0b}) }

var (
	unreachable = []byte{0x00}
	drop        = []byte{0x1a}
)

// expect32 traps unless the i32 on the stack has a value; expect64 likewise.
func expect32(v int64) []byte {
	return join(i32c(v), op(0x47, 0x04, 0x40), unreachable, op(0x0b))
}

func expect64(v int64) []byte {
	return join(i64c(v), op(0x52, 0x04, 0x40), unreachable, op(0x0b))
}

// descriptor is a valid one.
const descriptor = `{"abi":1,"name":"hostile","version":"1"}`

// agent makes b a complete agent whose turn runs body, which leaves a status.
func (b *builder) agent(locals string, body ...[]byte) []byte {
	b.fn("skep_abi_v1", "", "", "")
	b.fn("skep_turn", "i", "i", locals, body...)
	if b.memory == nil {
		b.mem(1)
	}
	b.custom("skep.descriptor", descriptor)
	return b.bytes()
}

var ok = i32c(0)
