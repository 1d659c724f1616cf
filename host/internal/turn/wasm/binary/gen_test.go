package binary_test

// generator turns bytes into a valid module that ends by itself: every call takes
// one from global 0, every loop counts down a local of its own. Everything else is
// open: traps, dead code, growth, calls through tables, results by every way out.
type generator struct {
	data   []byte
	b      *builder
	labels []byte // result type of each open block, 0 for none; outermost first
	fn     int    // kind of the function being written
	loops  int    // loops in it so far
	pieces int    // instructions may still be added while this is above zero
}

// Kinds of functions, all with parameters (i32, i64).
var kinds = [][]byte{nil, {i32}, {i32, i64}}

// Locals of every function.
const (
	gI32   = 0 // parameter
	gI64   = 1 // parameter
	gI32b  = 2
	gI64b  = 3
	gF64   = 4
	gV128  = 5
	gCount = 6 // counters of loops
	gLoops = 4
)

const (
	genFuncs   = 4
	genPages   = 3
	genSegment = 70_000
	genTable   = 6000
	genElems   = 5000
)

func generate(data []byte) []byte {
	g := &generator{data: data, b: &builder{}}
	b := g.b
	for _, results := range kinds {
		b.typ([]byte{i32, i64}, results)
	}
	b.memory(genPages)
	for _, min := range []uint64{genTable, 10} { // with maximums below the cap: growth is the same plain
		b.add(sTable, cat(op(funcref, 1), uleb(min), uleb(30_000))...)
	}
	b.global(i32, 60)
	b.global(i32, 7)
	b.global(i64, -7)
	b.export("memory", 2, 0)
	for i, name := range []string{"calls", "g1", "g2"} {
		b.export(name, 3, i)
	}
	segment := make([]byte, genSegment)
	for i := range segment {
		segment[i] = byte(i * 7)
	}
	b.passive(segment)
	b.passive(segment[:50])
	b.elem(0, 1, 2, 3, 1, 2)
	b.add(sElem, cat([]byte{1, 0}, uleb(genElems), repeat(genElems/2, uleb(1), uleb(2)))...)
	b.add(sElem, 1, 0, 3, 3, 2, 1)
	for i := range genFuncs {
		g.function(i)
	}
	return b.bytes()
}

func (g *generator) function(i int) {
	g.fn = i % len(kinds)
	g.loops, g.pieces, g.labels = 0, 150, nil
	locals := []uint64{1, i32, 1, i64, 1, f64, 1, v128, gLoops, i32}
	code := g.stmts(3)
	for _, t := range kinds[g.fn] {
		code = append(code, g.expr(t, 3)...)
	}
	g.b.exportFn(string(rune('a'+i)), g.b.fn(g.fn, locals, code))
}

// pick chooses one of n; at the end of the data it is always the first, which
// must be something short.
func (g *generator) pick(n int) int {
	g.pieces--
	if len(g.data) == 0 || g.pieces < 0 {
		return 0
	}
	v := int(g.data[0]) % n
	g.data = g.data[1:]
	return v
}

func (g *generator) stmts(depth int) (code []byte) {
	for range 1 + g.pick(5) {
		code = append(code, g.stmt(depth)...)
	}
	return code
}

func (g *generator) stmt(depth int) []byte {
	if depth == 0 {
		return op(0x01)
	}
	d := depth - 1
	switch g.pick(16) {
	case 1:
		return cat(g.expr(i32, d), set(gI32b))
	case 2:
		return cat(g.expr(i64, d), set(gI64b))
	case 3:
		return cat(g.expr(f64, d), set(gF64))
	case 4:
		return cat(g.expr(v128, d), set(gV128))
	case 5:
		return cat(g.expr(i32, d), gset(1))
	case 6:
		return cat(g.address(d), g.expr(i32, d), op(store32, 2, 0))
	case 7:
		return g.nested(0, func() []byte { return g.stmts(d) })
	case 8:
		return g.ifElse(0, d)
	case 9:
		return g.counted(d)
	case 10:
		return g.jump(d)
	case 11:
		return g.callStmt(d)
	case 12:
		return g.memoryBulk(d)
	case 13:
		return g.tableBulk(d)
	case 14:
		return cat(g.expr([]byte{i32, i64, f64, v128}[g.pick(4)], d), op(drop))
	case 15:
		return cat(g.expr(i64, d), gset(2))
	}
	return op(0x01)
}

// nested is a block of the given result type.
func (g *generator) nested(t byte, body func() []byte) []byte {
	g.labels = append(g.labels, t)
	code := body()
	g.labels = g.labels[:len(g.labels)-1]
	return cat(op(0x02, blockType(t)), code, op(end))
}

func blockType(t byte) byte {
	if t == 0 {
		return empty
	}
	return t
}

func (g *generator) ifElse(t byte, d int) []byte {
	code := cat(g.expr(i32, d), op(0x04, blockType(t)))
	g.labels = append(g.labels, t)
	code = append(code, g.stmts(d)...)
	if t != 0 {
		code = append(code, g.expr(t, d)...)
	}
	if t != 0 || g.pick(2) == 1 {
		code = append(append(code, 0x05), g.stmts(d)...)
		if t != 0 {
			code = append(code, g.expr(t, d)...)
		}
	}
	g.labels = g.labels[:len(g.labels)-1]
	return append(code, end)
}

// counted is a loop that turns a few times. Its label is kept from the body: only
// the counted branch may go back.
func (g *generator) counted(d int) []byte {
	if g.loops == gLoops {
		return op(0x01)
	}
	counter := gCount + g.loops
	g.loops++
	const hidden = 0xff
	g.labels = append(g.labels, hidden)
	body := g.stmts(d)
	g.labels = g.labels[:len(g.labels)-1]
	return cat(konst(int64(1+g.pick(4))), set(counter),
		loop(body, get(counter), konst(1), op(iSub), tee(counter), brIf(0)))
}

// jump leaves: by a branch to a block without result, by return, or by a trap.
func (g *generator) jump(d int) []byte {
	var open []uint64
	for i := range g.labels {
		if l := len(g.labels) - 1 - i; g.labels[l] == 0 {
			open = append(open, uint64(i))
		}
	}
	if kinds[g.fn] == nil {
		open = append(open, uint64(len(g.labels)))
	}
	choice := g.pick(6)
	switch {
	case choice == 5:
		return g.give(d)
	case choice == 4 && g.pick(4) == 0:
		return op(unreachable)
	case len(open) == 0:
		return op(0x01)
	case choice == 1:
		return br(int(open[g.pick(len(open))]))
	case choice == 2:
		return cat(g.expr(i32, d), brTable(open...))
	}
	return cat(g.expr(i32, d), brIf(int(open[g.pick(len(open))])))
}

// give leaves the function with its results.
func (g *generator) give(d int) (code []byte) {
	for _, t := range kinds[g.fn] {
		code = append(code, g.expr(t, d)...)
	}
	if g.pick(2) == 0 {
		return append(code, ret)
	}
	return append(code, br(len(g.labels))...)
}

// callStmt calls a function, directly or through a table, while calls are left.
func (g *generator) callStmt(d int) []byte {
	args := cat(g.expr(i32, d), g.expr(i64, d))
	kind := g.pick(len(kinds))
	invoke := call(kind)
	if g.pick(2) == 1 {
		invoke = cat(g.expr(i32, d), konst(7), op(iAnd), indirect(kind))
	}
	for range kinds[kind] {
		invoke = append(invoke, drop)
	}
	return cat(gget(0), op(0x04, empty), gget(0), konst(1), op(iSub), gset(0), args, invoke, op(end))
}

// address is masked most of the time.
func (g *generator) address(d int) []byte {
	if g.pick(16) == 15 {
		return g.expr(i32, d)
	}
	return cat(g.expr(i32, d), konst(0x3fff), op(iAnd))
}

// span is a length, an offset or a size around the ends of pieces and memories.
func (g *generator) span() []byte {
	spans := []int64{
		0, 1, 100, 4095, 4096, 4097, 5000, 6000, 65535, 65536, 65537, genSegment,
		131072, genPages << 16, genPages<<16 - 1, -1,
	}
	return konst(spans[g.pick(len(spans))])
}

func (g *generator) memoryBulk(d int) []byte {
	switch g.pick(4) {
	case 1:
		return cat(g.span(), g.expr(i32, d), g.span(), misc(miFill, 0))
	case 2:
		return cat(g.span(), g.span(), g.span(), misc(miCopy, 0, 0))
	case 3:
		return cat(g.span(), g.span(), g.span(), misc(miInit, uint64(g.pick(2)), 0))
	}
	if g.pick(8) == 7 {
		return misc(9, uint64(g.pick(2))) // data.drop
	}
	return cat(konst(int64(g.pick(3))), op(memGrow, 0), gset(1))
}

func (g *generator) tableBulk(d int) []byte {
	ref := cat(op(refFunc), uleb(uint64(g.pick(genFuncs))))
	if g.pick(3) == 0 {
		ref = op(refNull, nullFunc)
	}
	table := uint64(g.pick(4) / 3)
	switch g.pick(6) {
	case 1:
		return cat(g.span(), ref, g.span(), misc(tiFill, table))
	case 2:
		return cat(g.span(), g.span(), g.span(), misc(tiCopy, table, uint64(g.pick(2))))
	case 3:
		return cat(g.span(), g.span(), g.span(), misc(tiInit, uint64(1+g.pick(2)), table))
	case 4:
		return cat(ref, g.span(), misc(tiGrow, table), gset(1))
	case 5:
		return misc(13, uint64(1+g.pick(2))) // elem.drop
	}
	return cat(misc(tiSize, table), gset(1))
}

func (g *generator) expr(t byte, depth int) []byte {
	if depth <= 0 {
		return g.leaf(t)
	}
	d := depth - 1
	switch g.pick(8) {
	case 1:
		return g.nested(t, func() []byte { return cat(g.stmts(d), g.expr(t, d)) })
	case 2:
		return g.ifElse(t, d)
	case 3:
		return g.nested(t, func() []byte { // left with a value in the middle
			return cat(g.expr(t, d), g.expr(i32, d), brIf(0), op(drop), g.expr(t, d))
		})
	case 4:
		if t == v128 {
			break
		}
		return cat(g.expr(t, d), g.expr(t, d), g.expr(i32, d), op(sel))
	case 5, 6, 7:
		return g.arithmetic(t, d)
	}
	return g.leaf(t)
}

func (g *generator) leaf(t byte) []byte {
	switch t {
	case i32:
		return [][]byte{konst(int64(g.pick(256)) - 100), get(gI32), get(gI32b), gget(1)}[g.pick(4)]
	case i64:
		return [][]byte{konst64(int64(g.pick(256)) - 100), get(gI64), get(gI64b), gget(2)}[g.pick(4)]
	case f64:
		return get(gF64)
	}
	return get(gV128)
}

func (g *generator) arithmetic(t byte, d int) []byte {
	switch t {
	case i32:
		ops := []byte{iAdd, iSub, iMul, iDivU, 0x70, iAnd, iOr, iXor, iEq, iLtU}
		switch g.pick(5) {
		case 1:
			return cat(g.address(d), op(load32, 2, 0))
		case 2:
			return cat(g.expr(i64, d), op(0xa7)) // i32.wrap_i64
		case 3:
			return cat(g.expr(f64, d), op(0xfc, 2)) // i32.trunc_sat_f64_s
		case 4:
			return cat(g.expr(v128, d), op(0xfd, 0x1b, byte(g.pick(4)))) // i32x4.extract_lane
		}
		return cat(g.expr(i32, d), g.expr(i32, d), op(ops[g.pick(len(ops))]))
	case i64:
		ops := []byte{0x7c, 0x7d, 0x7e, 0x80, 0x83, 0x84, 0x85, 0x86}
		if g.pick(3) == 1 {
			return cat(g.expr(i32, d), op(0xac)) // i64.extend_i32_s
		}
		return cat(g.expr(i64, d), g.expr(i64, d), op(ops[g.pick(len(ops))]))
	case f64:
		if g.pick(2) == 0 {
			return cat(g.expr(i32, d), op(0xb7)) // f64.convert_i32_s
		}
		return cat(g.expr(f64, d), g.expr(f64, d), op([]byte{0xa0, 0xa1, 0xa2}[g.pick(3)]))
	}
	if g.pick(2) == 0 {
		return cat(g.expr(i32, d), op(0xfd, 0x11)) // i32x4.splat
	}
	return cat(g.expr(v128, d), g.expr(v128, d), op(0xfd, 0xae, 0x01)) // i32x4.add
}
