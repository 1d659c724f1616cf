package main

import "skep/host/internal/wasmbin"

// suspect is a module made by hand, and what it is suspected of.
type suspect struct {
	name string
	wasm []byte
}

// copies is how many functions of its kind a suspect has: enough to be measured,
// and few enough to end.
const copies = 4

// suspects press against one cap or several at once.
func suspects() []suspect {
	caps := wasmbin.DefaultCaps()
	room := int(caps.Body) - 64
	locals := int(caps.Locals) - 8
	fill := func(piece []byte) []byte { return repeatBytes(room/len(piece), piece) }
	var list []suspect
	add := func(name string, build func(a *asm)) {
		a := &asm{}
		build(a)
		list = append(list, suspect{name, a.agent(1, konst(0))})
	}
	same := func(locals int, body []byte) func(a *asm) {
		return func(a *asm) {
			t := a.typ(0, 0)
			for range copies {
				a.fn(t, locals, body)
			}
		}
	}
	add("straight code", same(locals, fill(cat(get(0), get(1), op(0x6a), set(2)))))
	add("ifs that each set a local", same(locals, ifs(room, locals)))
	add("loop headers", same(locals, loops(room, locals)))
	add("nested ifs", same(locals, nested(int(caps.Nesting)-8, locals)))
	add("br_tables", same(locals, fill(block(get(0), brTable(int(caps.BrTable)-1, 0)))))
	add("small br_tables", same(locals, fill(block(get(0), brTable(100, 0)))))
	add("calls with many operands", func(a *asm) { manyOperands(a, locals, fill) })
	add("branches with many operands", func(a *asm) { manyCarried(a, locals, room) })
	add("br_tables with many operands", func(a *asm) { manyLabels(a, locals, room) })
	add("tiny functions", func(a *asm) {
		t := a.typ(0, 0)
		for range caps.Functions - 2 {
			a.fn(t, 0)
		}
	})
	return list
}

// ifs sets one local after the other, each behind a condition.
func ifs(room, locals int) (body []byte) {
	for i := 0; len(body) < room-16; i++ {
		body = append(body, ifPiece(1+i%(locals-1))...)
	}
	return body
}

// loops is as many loop headers as one body may have, each with a local of its
// own that changes in it.
func loops(room, locals int) (body []byte) {
	const most = 4096
	for i := range most {
		local := 1 + i%(locals-1)
		if piece := loop(get(local), konst(1), op(0x6a), op(0x22), uleb(uint64(local)), op(0x0d, 0)); len(body)+len(piece) < room {
			body = append(body, piece...)
		}
	}
	return body
}

func ifPiece(local int) []byte {
	return cat(get(0), ifThen(get(local), konst(1), op(0x6a), set(local)))
}

// nested puts conditions into each other, each with a local of its own.
func nested(depth, locals int) (body []byte) {
	for i := range depth {
		local := 1 + i%(locals-1)
		body = cat(get(0), ifThen(body, get(local), konst(1), op(0x6a), set(local)))
	}
	return body
}

// manyOperands hands many results of one function to another, in four bytes.
func manyOperands(a *asm, n int, fill func([]byte) []byte) {
	give := a.fn(a.typ(0, n), 0, repeatBytes(n, konst(0)))
	take := a.fn(a.typ(n, 0), 0)
	void := a.typ(0, 0)
	for range copies {
		a.fn(void, 0, fill(cat(callFn(give), callFn(take))))
	}
}

// manyCarried branches with many operands, in four bytes.
func manyCarried(a *asm, n, room int) {
	wide := a.typ(0, n)
	give := a.fn(wide, 0, repeatBytes(n, konst(0)))
	take := a.fn(a.typ(n, 0), 0)
	void := a.typ(0, 0)
	branches := repeatBytes(room/4-8, cat(konst(0), op(0x0d, 0)))
	for range copies {
		a.fn(void, 0, op(0x02), uleb(uint64(wide)), callFn(give), branches, op(0x0b), callFn(take))
	}
}

// manyLabels is a table of branches that each carry many operands, in a byte.
func manyLabels(a *asm, n, room int) {
	wide := a.typ(0, n)
	give := a.fn(wide, 0, repeatBytes(n, konst(0)))
	take := a.fn(a.typ(n, 0), 0)
	void := a.typ(0, 0)
	labels := min(room-32, int(wasmbin.DefaultCaps().BrTable)-1)
	for range copies {
		a.fn(void, 0, op(0x02), uleb(uint64(wide)), callFn(give), konst(0), brTable(labels, 0), op(0x0b), callFn(take))
	}
}

// bombs are modules that must be refused at once: each is small or cheap to
// make, and costs an unwary host seconds or gigabytes.
func bombs() []suspect {
	one := func(locals int, body ...[]byte) []byte {
		a := &asm{}
		a.fn(a.typ(0, 0), locals, body...)
		return a.agent(1, konst(0))
	}
	table := &asm{tables: cat([]byte{1, 0x70, 0}, uleb(1<<27))}
	tiny := &asm{}
	t := tiny.typ(0, 0)
	for range 100_000 {
		tiny.fn(t, 0)
	}
	return []suspect{
		{"four billion locals", one(1<<32 - 1)},
		{"49,000 locals", one(49_000, ifs(58_000, 49_000))},
		{"a body of 600 KB", one(8, repeatBytes(75_000, cat(get(0), get(1), op(0x6a), set(2))))},
		{"100,000 functions", tiny.agent(1, konst(0))},
		{"a table of 134,217,728", table.agent(1, konst(0))},
		{"a memory of 4 GiB and more", (&asm{}).agent(1<<16+1, konst(0))},
		{"nesting of 30,000", one(1, repeatBytes(30_000, []byte{0x02, 0x40}), repeatBytes(30_000, []byte{0x0b}))},
		{"a br_table of a million", one(1, block(get(0), brTable(1_000_000, 0)))},
	}
}
