package binary_test

import "slices"

// builder assembles modules for the tests; it knows no more than the order of
// sections.
type builder struct {
	sections [13][]byte
	counts   [13]int
	funcs    int // function space so far; imports come first
}

// Section numbers, and single bytes of the binary format used in the tests.
const (
	sType, sImport, sFunc, sTable, sMemory, sGlobal = 1, 2, 3, 4, 5, 6
	sExport, sStart, sElem, sCode, sData, sCount    = 7, 8, 9, 10, 11, 12

	i32, i64, f32, f64, v128, funcref, externref = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f
	empty                                        = 0x40
	end                                          = 0x0b
)

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func uleb(v uint64) (b []byte) {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

func sleb(v int64) (b []byte) {
	for ; v >= 0x40 || v < -0x40; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v)&0x7f)
}

func vec(b []byte) []byte { return cat(uleb(uint64(len(b))), b) }

func name(s string) []byte { return vec([]byte(s)) }

func (b *builder) add(section int, entry ...byte) int {
	b.sections[section] = append(b.sections[section], entry...)
	b.counts[section]++
	return b.counts[section] - 1
}

func (b *builder) typ(params, results []byte) int {
	return b.add(sType, cat([]byte{0x60}, vec(params), vec(results))...)
}

func (b *builder) importFn(module, field string, typ int) int {
	b.add(sImport, cat(name(module), name(field), []byte{0}, uleb(uint64(typ)))...)
	b.funcs++
	return b.funcs - 1
}

// fn adds a function; locals are pairs of a count and a type.
func (b *builder) fn(typ int, locals []uint64, code ...[]byte) int {
	var decl []byte
	for i := 0; i < len(locals); i += 2 {
		decl = append(decl, uleb(locals[i])...)
		decl = append(decl, byte(locals[i+1]))
	}
	b.add(sFunc, uleb(uint64(typ))...)
	b.add(sCode, vec(cat(uleb(uint64(len(locals)/2)), decl, cat(code...), []byte{end}))...)
	b.funcs++
	return b.funcs - 1
}

func (b *builder) export(field string, kind byte, index int) {
	b.add(sExport, cat(name(field), []byte{kind}, uleb(uint64(index)))...)
}

func (b *builder) exportFn(field string, index int) { b.export(field, 0, index) }

func (b *builder) memory(pages uint64) { b.add(sMemory, cat([]byte{0}, uleb(pages))...) }

func (b *builder) table(elem byte, size uint64) { b.add(sTable, cat([]byte{elem, 0}, uleb(size))...) }

func (b *builder) global(typ byte, v int64) int {
	konst := byte(0x41)
	if typ == i64 {
		konst = 0x42
	}
	return b.add(sGlobal, cat([]byte{typ, 1, konst}, sleb(v), []byte{end})...)
}

// elem fills table 0 from its start.
func (b *builder) elem(funcs ...int) {
	e := []byte{0, 0x41, 0, end}
	e = append(e, uleb(uint64(len(funcs)))...)
	for _, f := range funcs {
		e = append(e, uleb(uint64(f))...)
	}
	b.add(sElem, e...)
}

// passive adds a data segment and the count section that memory.init needs.
func (b *builder) passive(data []byte) int {
	b.counts[sCount]++
	return b.add(sData, cat([]byte{1}, vec(data))...)
}

func (b *builder) start(f int) { b.sections[sStart] = uleb(uint64(f)) }

func (b *builder) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		body := cat(uleb(uint64(b.counts[s])), b.sections[s])
		switch {
		case s == sStart:
			body = b.sections[s]
		case s == sCount && b.counts[s] > 0:
			body = uleb(uint64(b.counts[sData]))
		case b.counts[s] == 0:
			body = nil
		}
		if len(body) > 0 {
			out = append(out, byte(s))
			out = append(out, vec(body)...)
		}
	}
	return out
}

// Instructions.

func op(code ...byte) []byte { return code }

func opU(code byte, xs ...uint64) []byte {
	b := []byte{code}
	for _, x := range xs {
		b = append(b, uleb(x)...)
	}
	return b
}

func misc(sub uint64, xs ...uint64) []byte { return opU(0xfc, append([]uint64{sub}, xs...)...) }

func get(i int) []byte       { return opU(0x20, uint64(i)) }
func set(i int) []byte       { return opU(0x21, uint64(i)) }
func tee(i int) []byte       { return opU(0x22, uint64(i)) }
func gget(i int) []byte      { return opU(0x23, uint64(i)) }
func gset(i int) []byte      { return opU(0x24, uint64(i)) }
func konst(v int64) []byte   { return cat(op(0x41), sleb(v)) }
func konst64(v int64) []byte { return cat(op(0x42), sleb(v)) }
func call(f int) []byte      { return opU(0x10, uint64(f)) }
func br(l int) []byte        { return opU(0x0c, uint64(l)) }
func brIf(l int) []byte      { return opU(0x0d, uint64(l)) }

// indirect calls through table 0 by a type.
func indirect(typ int) []byte { return opU(0x11, uint64(typ), 0) }

func brTable(labels ...uint64) []byte {
	return opU(0x0e, append([]uint64{uint64(len(labels) - 1)}, labels...)...)
}

func block(code ...[]byte) []byte  { return cat(op(0x02, empty), cat(code...), op(end)) }
func loop(code ...[]byte) []byte   { return cat(op(0x03, empty), cat(code...), op(end)) }
func ifThen(code ...[]byte) []byte { return cat(op(0x04, empty), cat(code...), op(end)) }

func repeat(n int, code ...[]byte) []byte { return slices.Repeat(cat(code...), n) }

const (
	iEqz, iEq, iLtU, iGtU    = 0x45, 0x46, 0x49, 0x4b
	iAdd, iSub, iMul, iDivU  = 0x6a, 0x6b, 0x6c, 0x6e
	iAnd, iOr, iXor          = 0x71, 0x72, 0x73
	drop, ret, unreachable   = 0x1a, 0x0f, 0x00
	memSize, memGrow         = 0x3f, 0x40
	miInit, miCopy, miFill   = 8, 10, 11
	tiInit, tiCopy, tiGrow   = 12, 14, 15
	tiSize, tiFill, nullFunc = 16, 17, 0x70
	load8, load32, store32   = 0x2d, 0x28, 0x36
	refNull, refFunc, sel    = 0xd0, 0xd2, 0x1b
)
