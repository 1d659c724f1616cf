package conform_test

import "slices"

// builder assembles a module by hand, so that a faulty guest has the fault its
// test names and no other. Types are written as strings: i is i32, I is i64.
type builder struct {
	types, imports, funcs, exports, code, data, customs [][]byte
	pages                                               byte
}

// guest is a builder with the imports that every faulty guest has.
func guest() *builder {
	b := &builder{pages: 1}
	for _, f := range []struct{ name, params, results string }{
		{"input_read", "iii", "i"}, {"output_write", "ii", "i"}, {"call", "iiiii", "I"},
	} {
		b.imports = append(b.imports, join(text("skep_v1"), text(f.name), op(0), b.typeOf(f.params, f.results)))
	}
	b.imports = append(b.imports, join(text("wasi_snapshot_preview1"), text("random_get"), op(0), b.typeOf("ii", "i")))
	return b
}

// The imports of every guest.
const (
	inputRead = iota
	outputWrite
	call
	randomGet
)

// uleb encodes an unsigned number, sleb a signed one.
func uleb(v int) []byte {
	var out []byte
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

func sleb(v int) []byte {
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

func text(s string) []byte { return append(uleb(len(s)), s...) }

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func valueList(types string) []byte {
	out := uleb(len(types))
	for _, t := range types {
		out = append(out, map[rune]byte{'i': 0x7f, 'I': 0x7e}[t])
	}
	return out
}

func (b *builder) typeOf(params, results string) []byte {
	b.types = append(b.types, join(op(0x60), valueList(params), valueList(results)))
	return uleb(len(b.types) - 1)
}

// fn adds an exported function.
func (b *builder) fn(name, params, results, locals string, body ...[]byte) {
	b.exports = append(b.exports, join(text(name), op(0), uleb(len(b.imports)+len(b.funcs))))
	b.funcs = append(b.funcs, b.typeOf(params, results))
	decl := uleb(len(locals))
	for _, t := range locals {
		decl = append(decl, 1, map[rune]byte{'i': 0x7f, 'I': 0x7e}[t])
	}
	whole := join(decl, join(body...), op(0x0b))
	b.code = append(b.code, join(uleb(len(whole)), whole))
}

// at puts a text into the memory.
func (b *builder) at(offset int, content string) *builder {
	b.data = append(b.data, join(op(0), i32(offset), op(0x0b), text(content)))
	return b
}

func (b *builder) custom(name, content string) {
	body := join(text(name), []byte(content))
	b.customs = append(b.customs, join(op(0), uleb(len(body)), body))
}

// agent makes b a complete agent whose turn runs body, which leaves a status. Its
// locals are the input's length, an i32 and an i64.
func (b *builder) agent(body ...[]byte) []byte {
	b.fn("skep_abi_v1", "", "", "")
	b.fn("skep_turn", "i", "i", "iI", body...)
	b.exports = append(b.exports, join(text("memory"), op(2, 0)))
	if b.customs == nil {
		b.custom("skep.descriptor", `{"abi":1,"name":"faulty","version":"1"}`)
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items [][]byte) {
		if len(items) > 0 {
			body := join(uleb(len(items)), join(items...))
			out = append(out, join(op(id), uleb(len(body)), body)...)
		}
	}
	section(1, b.types)
	section(2, b.imports)
	section(3, b.funcs)
	section(5, [][]byte{{0, b.pages}})
	section(7, b.exports)
	section(10, b.code)
	section(11, b.data)
	return append(out, join(b.customs...)...)
}

// Instructions.

func op(codes ...byte) []byte { return codes }
func i32(v int) []byte        { return append([]byte{0x41}, sleb(v)...) }
func i64(v int) []byte        { return append([]byte{0x42}, sleb(v)...) }
func callf(i int) []byte      { return append([]byte{0x10}, uleb(i)...) }
func get(i byte) []byte       { return op(0x20, i) }
func set(i byte) []byte       { return op(0x21, i) }
func tee(i byte) []byte       { return op(0x22, i) }

// when runs a body where the i32 on the stack is not 0.
func when(body ...[]byte) []byte { return join(op(0x04, 0x40), join(body...), op(0x0b)) }

// write writes a text of the memory as output.
func write(offset, size int) []byte {
	return join(i32(offset), i32(size), callf(outputWrite), drop)
}

// mail calls op 10 with the request at 0, and leaves the result.
func mail() []byte {
	return join(i32(10), i32(0), i32(len(request)), i32(4096), i32(1024), callf(call))
}

// request is a call of a tool.
const request = `{"tool":"await_message","args":{"reason":null}}`

var (
	drop        = op(0x1a)
	ok          = i32(0)
	add         = op(0x6a)
	wrap        = op(0xa7)
	same64      = op(0x51)
	unreachable = op(0x00)
	forever     = op(0x03, 0x40, 0x0c, 0, 0x0b)
	store8      = op(0x3a, 0, 0)
	load8       = op(0x2d, 0, 0)
)
