package main

import (
	"fmt"

	"skep/host/internal/turn/wasm/binary"
)

// craftedModule is a module made by hand, and what it is suspected of.
type craftedModule struct {
	name string
	wasm []byte
}

// shape builds a module whose functions have bodies of about so many bytes.
type shape struct {
	name  string
	build func(room int) []byte
}

// costliestModules are shapes of code that cost a compiler much, each as large as the caps
// let it be.
func costliestModules() []craftedModule {
	var list []craftedModule
	for _, s := range shapes() {
		if wasm := largest(s.build); wasm != nil {
			list = append(list, craftedModule{s.name, wasm})
		}
	}
	return list
}

// largest builds the module with the largest bodies that is admitted, or nil where
// a shape is refused in every size.
func largest(build func(room int) []byte) []byte {
	caps := binary.DefaultCaps()
	for room := int(caps.Body) - 64; room > 4; room = room * 7 / 8 {
		wasm := build(room)
		if _, err := binary.Admit(wasm, caps); err == nil {
			return wasm
		}
	}
	return nil
}

// enough is how many bodies make a module that is large enough to be measured, and
// small enough to end.
func enough(body []byte) int { return max(4, 200_000/(len(body)+4)) }

func shapes() []shape {
	list := []shape{
		{"straight code", same(248, func(room int) []byte { return fill(room, cat(get(0), get(1), op(0x6a), set(2))) })},
		{"loads", same(1, func(room int) []byte { return cat(get(0), fill(room, op(0x28, 0, 0)), set(0)) })},
		{"conversions that trap", same(1, func(room int) []byte {
			return cat(get(0), op(0xb7), fill(room, op(0xb1, 0xba)), op(0x1a))
		})},
		{"divisions", same(1, func(room int) []byte { return cat(get(0), fill(room, cat(get(0), op(0x6d))), set(0)) })},
		{"br_tables", same(1, func(room int) []byte {
			return fill(room, block(get(0), brTable(min(room-16, int(binary.DefaultCaps().BrTable)-1), 0)))
		})},
		{"small br_tables", same(1, func(room int) []byte { return fill(room, block(get(0), brTable(10, 0))) })},
		{"calls", func(room int) []byte { return passing(room, 1, 1) }},
		{"calls with many operands", func(room int) []byte { return passing(room, 240, 16) }},
		{"branches with many operands", manyCarried},
		{"br_tables with many operands", manyLabels},
		{"tiny functions", tiny},
	}
	for _, locals := range []int{1, 8, 64, 248} {
		add := func(name string, body func(room, locals int) []byte) {
			list = append(list, shape{fmt.Sprintf("%s, %d locals", name, locals),
				same(locals, func(room int) []byte { return body(room, locals) })})
		}
		add("ifs that each set a local", ifs)
		add("loop headers", loops)
		add("nested ifs", nested)
		add("nested loops", nestedLoops)
		add("a loop of copies", copied)
		add("a join of all locals", joined)
	}
	return list
}

// same is a module of many functions with one body.
func same(locals int, body func(room int) []byte) func(room int) []byte {
	return func(room int) []byte {
		a := &asm{}
		t := a.typ(0, 0)
		code := body(room)
		for range enough(code) {
			a.fn(t, locals, code)
		}
		return a.agent(1, konst(0))
	}
}

func fill(room int, piece []byte) []byte { return repeatBytes(room/len(piece), piece) }

// tiny has functions of almost nothing.
func tiny(room int) []byte {
	a := &asm{}
	t := a.typ(0, 0)
	for range min(200_000/(room+4), int(binary.DefaultCaps().Functions)-2) {
		a.fn(t, 0, fill(room, op(0x01)))
	}
	return a.agent(1, konst(0))
}

// ifs sets one local after the other, each behind a condition.
func ifs(room, locals int) (body []byte) {
	for i := 0; len(body) < room-16; i++ {
		body = append(body, ifPiece(i%locals)...)
	}
	return body
}

func ifPiece(local int) []byte {
	return cat(get(0), ifThen(get(local), konst(1), op(0x6a), set(local)))
}

// loops is as many loop headers as one body may have, each with a local of its
// own that changes in it.
func loops(room, locals int) (body []byte) {
	const most = 4096
	for i := range most {
		local := i % locals
		piece := loop(get(local), konst(1), op(0x6a), op(0x22), uleb(uint64(local)), op(0x0d, 0))
		if len(body)+len(piece) > room {
			break
		}
		body = append(body, piece...)
	}
	return body
}

// depth is how many blocks of that size can lie in each other.
func depth(room, size int) int {
	return max(1, min(room/size, int(binary.DefaultCaps().Nesting)-8))
}

// nested puts conditions into each other, each with a local of its own.
func nested(room, locals int) (body []byte) {
	for i := range depth(room, 14) {
		local := i % locals
		body = cat(get(0), ifThen(body, get(local), konst(1), op(0x6a), set(local)))
	}
	return body
}

// nestedLoops reads all locals inside loops that lie in each other.
func nestedLoops(room, locals int) []byte {
	body := reads(locals)
	for range depth(room-len(body), 7) {
		body = loop(body, get(0), op(0x0d, 0))
	}
	return body
}

// copied is a loop that copies each local to the one before it, and joins that the
// compiler looks at again for each copy.
func copied(room, locals int) (body []byte) {
	for i := range locals {
		body = append(body, cat(get(min(i+1, locals-1)), set(i))...)
	}
	body = loop(body, konst(0), op(0x0d, 0))
	return append(body, fill(max(0, room-len(body)), cat(konst(0), ifThen(sets(locals)), reads(locals)))...)
}

// joined lets many branches and one assignment of all locals meet.
func joined(room, locals int) []byte {
	all := cat(sets(locals), reads(locals))
	return cat(block(fill(max(4, room-len(all)), cat(konst(0), op(0x0d, 0))), sets(locals)), reads(locals))
}

// sets gives all locals one value.
func sets(locals int) []byte {
	body := konst(7)
	for i := range locals {
		body = append(body, cat(op(0x22), uleb(uint64(i)))...)
	}
	return append(body, 0x1a)
}

func reads(locals int) (body []byte) {
	for i := range locals {
		body = append(body, cat(get(i), op(0x1a))...)
	}
	return body
}

// passing hands so many results of one function to another, once in every piece of
// code so many times as long.
func passing(room, n, between int) []byte {
	a := &asm{}
	give := a.fn(a.typ(0, n), 0, repeatBytes(n, konst(0)))
	take := a.fn(a.typ(n, 0), 0)
	void := a.typ(0, 0)
	code := fill(room, cat(callFn(give), repeatBytes(between*n, cat(get(0), set(0))), callFn(take)))
	for range enough(code) {
		a.fn(void, 1, code)
	}
	return a.agent(1, konst(0))
}

// manyCarried branches with many operands, in four bytes.
func manyCarried(room int) []byte { return carrying(fill(room, cat(konst(0), op(0x0d, 0)))) }

// manyLabels is a table of branches that each carry many operands, in a byte.
func manyLabels(room int) []byte {
	return carrying(cat(konst(0), brTable(min(room, int(binary.DefaultCaps().BrTable)-1), 0)))
}

func carrying(branches []byte) []byte {
	a := &asm{}
	wide := a.typ(0, 240)
	give := a.fn(wide, 0, repeatBytes(240, konst(0)))
	take := a.fn(a.typ(240, 0), 0)
	void := a.typ(0, 0)
	for range enough(branches) {
		a.fn(void, 0, op(0x02), uleb(uint64(wide)), callFn(give), branches, op(0x0b), callFn(take))
	}
	return a.agent(1, konst(0))
}

// refusedModules are modules that must be refused at once: each is small or cheap to
// make, and costs an unwary host seconds or gigabytes.
func refusedModules() []craftedModule {
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
	const room = 60_000
	return []craftedModule{
		{"ifs over 248 locals", same(248, func(room int) []byte { return ifs(room, 248) })(room)},
		{"loops in each other over 248 locals", same(248, func(room int) []byte { return nestedLoops(room, 248) })(room)},
		{"branches with 240 operands", manyCarried(room)},
		{"labels with 240 operands", manyLabels(9_000)},
		{"calls with 240 operands", passing(room, 240, 0)},
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
