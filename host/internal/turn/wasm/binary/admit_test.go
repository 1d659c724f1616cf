package binary_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"skep/host/internal/turn/wasm/binary"
)

// bombs are small or plain modules that cost an engine gigabytes or minutes.
var bombs = []struct {
	name string
	cap  string // key that refuses it; empty for a format error
	make func() []byte
}{
	{"four billion locals", "locals", func() []byte {
		return oneFunction(nil, cat([]byte{1}, uleb(1<<32-1), []byte{i64, end}))
	}},
	{"locals that wrap around", "locals", func() []byte {
		return oneFunction(nil, cat([]byte{2}, uleb(1<<32-1), []byte{i64}, uleb(2), []byte{i64, end}))
	}},
	{"600 KB body", "body", func() []byte {
		return oneFunction(nil, cat([]byte{0}, repeat(200_000, konst(1), op(drop)), op(end)))
	}},
	{"49,000 locals and 4,000 ifs", "locals", func() []byte {
		return oneFunction(nil, cat([]byte{1}, uleb(49_000), []byte{i32},
			repeat(4000, get(0), ifThen(konst(1), set(1))), op(end)))
	}},
	{"100,000 functions", "functions", func() []byte {
		b := &builder{}
		none := b.typ(nil, nil)
		for range 100_000 {
			b.fn(none, nil)
		}
		return b.bytes()
	}},
	{"giant table", "table_elements", func() []byte {
		b := &builder{}
		b.table(funcref, 134_217_728)
		return b.bytes()
	}},
	{"tables together", "table_elements", func() []byte {
		b := &builder{}
		b.table(funcref, 60_000)
		b.table(externref, 60_000)
		return b.bytes()
	}},
	{"five tables", "tables", func() []byte {
		b := &builder{}
		for range 5 {
			b.table(funcref, 1)
		}
		return b.bytes()
	}},
	{"nesting", "nesting", func() []byte {
		return oneFunction(nil, cat([]byte{0}, repeat(20_000, op(0x02, empty)), repeat(20_001, op(end))))
	}},
	{"br_table", "br_table", func() []byte {
		return oneFunction(nil, cat([]byte{0}, konst(0), brTable(make([]uint64, 20_000)...), op(end)))
	}},
	{"br_table without its labels", "", func() []byte {
		return oneFunction(nil, cat([]byte{0}, konst(0), opU(0x0e, 1<<32-1), op(end)))
	}},
	{"parameters", "locals", func() []byte { return oneFunction(make32(10_000), []byte{0, end}) }},
	{"types without bytes", "", func() []byte { return raw(sType, uleb(1<<32-1)) }},
	{"elements without bytes", "", func() []byte {
		return raw(sElem, cat(op(1, 1, 0), uleb(1<<32-1)))
	}},
	{"types", "types", func() []byte {
		b := &builder{}
		for range 10_001 {
			b.typ(nil, nil)
		}
		return b.bytes()
	}},
	{"imports", "imports", func() []byte {
		b := &builder{}
		for range 65 {
			b.importFn("m", "f", b.typ(nil, nil))
		}
		return b.bytes()
	}},
	{"globals", "globals", func() []byte {
		b := &builder{}
		for range 10_001 {
			b.global(i32, 0)
		}
		return b.bytes()
	}},
	{"data segments", "data_segments", func() []byte {
		return raw(sData, cat(uleb(200_001), repeat(200_001, op(1, 0))))
	}},
	{"element segments", "element_segments", func() []byte {
		b := &builder{}
		for range 10_001 {
			b.add(sElem, 1, 0, 0)
		}
		return b.bytes()
	}},
	{"calls times globals", "", func() []byte {
		b := &builder{}
		for range 10_000 {
			b.global(i32, 0)
		}
		b.fn(b.typ(nil, nil), nil, repeat(30_000, call(0)))
		return b.bytes()
	}},
	{"loops", "", func() []byte {
		return oneFunction(nil, cat([]byte{0}, repeat(9_000, loop(konst(0), brIf(0))), op(end)))
	}},
	{"custom sections", "", func() []byte {
		return cat((&builder{}).bytes(), repeat(100_000, op(0, 1, 0)))
	}},
	{"17 MiB", "size", func() []byte { return make([]byte, 17<<20) }},
}

func make32(n int) []byte { return repeat(n, op(i32)) }

// oneFunction is a module of one function with that body.
func oneFunction(params, body []byte) []byte {
	b := &builder{}
	b.add(sFunc, uleb(uint64(b.typ(params, nil)))...)
	b.add(sCode, vec(body)...)
	return b.bytes()
}

// raw is a module of one section with that content.
func raw(section byte, content []byte) []byte {
	return cat([]byte("\x00asm\x01\x00\x00\x00"), op(section), vec(content))
}

func TestBombsAreRefused(t *testing.T) {
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			wasm := b.make()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := processorTime(t)
			_, err := binary.Admit(wasm, binary.DefaultCaps())
			took := processorTime(t) - start
			runtime.ReadMemStats(&after)
			checkRefusal(t, err, b.cap)
			if took > 100*time.Millisecond { // the benchmark has the honest figure
				t.Errorf("refused after %v", took)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
				t.Errorf("allocated %d bytes for a module of %d", got, len(wasm))
			}
		})
	}
}

// processorTime is what this process has taken so far: other processes do not add to it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func checkRefusal(t *testing.T, err error, key string) {
	t.Helper()
	var limit *binary.CapError
	var format *binary.FormatError
	switch {
	case key == "" && !errors.As(err, &format):
		t.Errorf("Admit = %v, want a format error", err)
	case key == "":
	case !errors.As(err, &limit) || limit.Cap != key || limit.Got <= limit.Limit:
		t.Errorf("Admit = %v, want a cap error for %s", err, key)
	case !strings.Contains(err.Error(), "raise [limits.module] "+key):
		t.Errorf("message %q does not say what to raise", err)
	}
}

func BenchmarkBombs(b *testing.B) {
	for _, bomb := range bombs {
		wasm := bomb.make()
		b.Run(strings.ReplaceAll(bomb.name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if _, err := binary.Admit(wasm, binary.DefaultCaps()); err == nil {
					b.Fatal("admitted")
				}
			}
		})
	}
}

// Each cap admits what is exactly at it.
func TestCapsAreInclusive(t *testing.T) {
	b := &builder{}
	none := b.typ(nil, nil)
	for range 9_999 {
		b.typ(nil, nil)
	}
	for range 64 {
		b.importFn("m", "f", none)
	}
	b.table(funcref, 50_000)
	b.table(funcref, 50_000)
	b.table(funcref, 0)
	b.table(funcref, 0)
	for range 10_000 {
		b.add(sGlobal, i32, 0, 0x41, 0, end)
		b.add(sElem, 1, 0, 0)
	}
	b.fn(none, []uint64{256, i32})
	b.fn(none, nil, konst(0), brTable(make([]uint64, 10_001)...))
	b.fn(none, nil, repeat(1024, op(0x02, empty)), repeat(1024, op(end)))
	b.fn(none, nil, repeat(65536-2, op(0x01)))
	for range 50_000 - 4 {
		b.fn(none, nil)
	}
	caps := binary.DefaultCaps()
	caps.CompileWork = math.MaxInt64 // all of them together are too much to compile
	if _, err := binary.Admit(b.bytes(), caps); err != nil {
		t.Errorf("Admit = %v, want everything at its cap admitted", err)
	}
}

func TestRefusals(t *testing.T) {
	header := "\x00asm\x01\x00\x00\x00"
	body := func(code ...[]byte) []byte {
		return oneFunction(nil, cat(op(0), cat(code...), op(end)))
	}
	tests := []struct {
		name string
		wasm []byte
		want string // part of the reason
	}{
		{"nothing", nil, "unexpected end"},
		{"half a header", []byte(header[:5]), "unexpected end"},
		{"not wasm", []byte("#!/bin/sh\n"), "not a Wasm module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "not a Wasm module"},
		{"unknown section", raw(14, nil), "section 14 is not admitted"},
		{"tags", raw(13, op(0)), "section 13 is not admitted"},
		{"repeated section", cat(raw(sType, op(0)), op(sType, 1, 0)), "repeated or out of order"},
		{"order", cat(raw(sFunc, op(0)), op(sType, 1, 0)), "repeated or out of order"},
		{"section too long", cat([]byte(header), op(sType, 9, 0)), "section 1 of 9 bytes, 1 left"},
		{"section too short", raw(sType, op(0, 0)), "1 bytes too many"},
		{"huge section", cat([]byte(header), op(sType), uleb(1<<32-1)), "section 1 of 4294967295 bytes"},
		{"long integer", cat([]byte(header), op(0, 0x80, 0x80, 0x80, 0x80, 0x10)), "does not fit into 32 bits"},
		{"endless integer", cat([]byte(header), op(0, 0x80, 0x80, 0x80, 0x80, 0x80, 0)), "does not fit into 32 bits"},
		{"name", raw(sImport, cat(op(1), vec(op(0xff)), name("f"), op(0, 0))), "UTF-8"},
		{"long name", raw(sImport, cat(op(1), vec(make([]byte, 1025)), name("f"), op(0, 0))), "name of 1025 bytes, at most 1024"},
		{"custom name", raw(0, vec(op(0xc3, 0x28))), "UTF-8"},
		{"GC type", raw(sType, op(1, 0x5f, 0, 0)), "type form 0x5f"},
		{"exnref", raw(sType, op(1, 0x60, 1, 0x69, 0)), "value type 0x69"},
		{"typed reference", raw(sType, op(1, 0x60, 1, 0x64, 0x70, 0)), "value type 0x64"},
		{"shared memory", raw(sMemory, op(1, 3, 1, 1)), "sharing between threads (threads)"},
		{"64-bit memory", raw(sMemory, op(1, 4, 1)), "64-bit addresses (memory64)"},
		{"odd pages", raw(sMemory, op(1, 8, 1, 0)), "custom-page-sizes"},
		{"unknown limits", raw(sMemory, op(1, 0x40, 1)), "limits with flags 0x40"},
		{"two memories", raw(sMemory, op(2, 0, 1, 0, 1)), "more than one memory"},
		{"large memory", raw(sMemory, cat(op(1, 0), uleb(65537))), "65536 pages"},
		{"limits", raw(sMemory, op(1, 1, 2, 1)), "maximum 1 is below minimum 2"},
		{"table64", raw(sTable, op(1, funcref, 4, 1)), "64-bit addresses (memory64)"},
		{"table with initialiser", raw(sTable, op(1, 0x40, 0, funcref, 0, 1)), "reference type 0x40"},
		{"imported tag", raw(sImport, cat(op(1), name("m"), name("t"), op(4, 0, 0))), "kind 4"},
		{"reserved module", raw(sImport, cat(op(1), name("__skep"), name("x"), op(3, i32, 0))), "belongs to the host"},
		{"reserved import", raw(sImport, cat(op(1), name("m"), name("__skepx"), op(3, i32, 0))), "belongs to the host"},
		{"reserved export", cat(raw(sMemory, op(1, 0, 1)), op(sExport), vec(cat(op(1), name("__skep_g0"), op(2, 0)))), "belongs to the host"},
		{"repeated export", cat(raw(sMemory, op(1, 0, 1)), op(sExport), vec(cat(op(2), name("m"), op(2, 0), name("m"), op(2, 0)))), "repeated"},
		{"export of nothing", raw(sExport, cat(op(1), name("f"), op(0, 0))), "entry 0 of 0"},
		{"initialiser of two", raw(sGlobal, op(1, i32, 0, 0x41, 0, 0x41, 0, end)), "not one constant"},
		{"extended initialiser", raw(sGlobal, op(1, i32, 0, 0x41, 1, 0x41, 1, 0x6a, end)), "not one constant"},
		{"initialiser type", raw(sGlobal, op(1, i64, 0, 0x41, 0, end)), "is i32, i64 wanted"},
		{"initialiser reads a defined global", raw(sGlobal, op(2, i32, 0, 0x41, 0, end, i32, 0, 0x23, 0, end)), "not imported"},
		{"initialiser calls", raw(sGlobal, op(1, i32, 0, 0x10, 0, end)), "not admitted in an initialiser"},
		{"start", raw(sStart, op(0)), "start function 0"},
		{"function without body", cat(raw(sType, op(1, 0x60, 0, 0)), op(sFunc, 2, 1, 0)), "1 functions declared, 0 defined"},
		{"data count", cat(raw(sMemory, op(1, 0, 1)), op(sCount, 1, 2)), "2 data segments declared, 0 defined"},
		{"data without memory", raw(sData, op(1, 0, 0x41, 0, end, 0)), "without a memory"},
		{"element kind", raw(sElem, op(1, 1, 1, 0)), "element kind 0x01"},
		{"element flags", raw(sElem, op(1, 8, 0, 0)), "flags 0x8"},
		{"elements without table", raw(sElem, op(1, 0, 0x41, 0, end, 0)), "table 0 of 0"},
		{"atomics", body(op(0xfe, 0x03, 0)), "opcode 0xfe (threads)"},
		{"try", body(op(0x06, empty, end)), "opcode 0x06"},
		{"throw", body(op(0x08, 0)), "opcode 0x08"},
		{"tail call", body(op(0x12, 0)), "opcode 0x12 (tail calls)"},
		{"GC opcode", body(op(0xfb, 0x00, 0)), "opcode 0xfb"},
		{"call_ref", body(op(0x14, 0)), "opcode 0x14"},
		{"relaxed SIMD", body(op(0xfd, 0x80, 0x02)), "opcode 0xfd 256"},
		{"hole in SIMD", body(op(0xfd, 0x9a, 0x01)), "opcode 0xfd9a"},
		{"wide arithmetic", body(op(0xfc, 19)), "opcode 0xfc13"},
		{"lane", body(op(0xfd, 0x1d, 2)), "lane 2 of 2"},
		{"alignment", body(konst(0), op(load32, 3, 0, drop)), "alignment 2^3"},
		{"multi-memory access", body(konst(0), op(load32, 0x42, 1, 0, drop)), "alignment"},
		{"no memory", body(konst(0), op(load32, 2, 0, drop)), "without a memory"},
		{"memory index", body(op(memSize, 1, drop)), "one memory"},
		{"local", body(get(0), op(drop)), "local 0 of 0"},
		{"global", body(gget(0), op(drop)), "global 0 of 0"},
		{"call", body(call(1)), "function 1 of 1"},
		{"indirect", body(konst(0), indirect(0)), "table 0 of 0"},
		{"label", body(br(1)), "label 1 of 1"},
		{"block type", body(op(0x02, 0x05, end)), "type 5 of 1"},
		{"block type form", body(op(0x02, 0x41, end)), "block type"},
		{"operand missing", body(op(drop)), "operand missing"},
		{"operand below the block", body(konst(1), block(op(drop)), op(drop)), "operand missing"},
		{"operand left", body(konst(1)), "block leaves 1 operands of 0"},
		{"result missing", body(op(0x02, i32, end, drop)), "block leaves 0 operands of 1"},
		{"if without else", body(konst(1), op(0x04, i32), konst(1), op(end, drop)), "if without else"},
		{"else without if", body(block(op(0x05))), "else without if"},
		{"br_table arities", body(op(0x02, i32), konst(1), konst(0), brTable(0, 1), op(end, drop)), "1 and 0"},
		{"select of two", body(op(0x1c, 2, i32, i32)), "select with 2 types"},
		{"data segment", body(op(0xfc, 9, 0)), "data segment 0 of 0"},
		{"element segment", body(op(0xfc, 13, 0)), "element segment 0 of 0"},
		{"code behind the end", oneFunction(nil, op(0, end, end)), "goes on after its end"},
		{"no end", oneFunction(nil, op(0, 0x01)), "unexpected end"},
		{"instruction cut off", oneFunction(nil, op(0, 0x41)), "unexpected end"},
		{"body without function", raw(sCode, op(1, 2, 0, end)), "0 functions declared, 1 defined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := binary.Admit(tt.wasm, binary.DefaultCaps())
			var format *binary.FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Admit = %v, want a format error with %q", err, tt.want)
			}
			if format != nil && (format.Offset < 0 || format.Offset > len(tt.wasm)) {
				t.Errorf("offset %d in %d bytes", format.Offset, len(tt.wasm))
			}
		})
	}
}

func TestModuleView(t *testing.T) {
	b := &builder{}
	none, unary := b.typ(nil, nil), b.typ([]byte{i32}, []byte{i64})
	b.importFn("skep_v1", "call", unary)
	b.global(i32, 1)
	b.add(sGlobal, i64, 0, 0x42, 5, end)
	b.global(i64, 2)
	b.memory(3)
	b.export("memory", 2, 0)
	b.exportFn("run", b.fn(none, nil))
	b.start(1)
	wasm := cat(b.bytes(), op(0), vec(cat(name("skep.descriptor"), []byte(`{"abi":1}`))), op(0), vec(name("other")))
	m, err := binary.Admit(wasm, binary.DefaultCaps())
	if err != nil {
		t.Fatal(err)
	}
	if im := m.Imports[0]; im.Module != "skep_v1" || im.Name != "call" || im.Kind != binary.KindFunc || im.Type != 1 {
		t.Errorf("import = %+v", im)
	}
	if ft, ok := m.FuncType(0); !ok || ft.Params[0] != binary.I32 || ft.Results[0] != binary.I64 {
		t.Errorf("type of function 0 = %v, %v", ft, ok)
	}
	if _, ok := m.FuncType(2); ok {
		t.Error("function 2 exists")
	}
	if e, ok := m.Export("run"); !ok || e.Index != 1 || m.Start != 1 {
		t.Errorf("export run = %+v, %v; start = %d", e, ok, m.Start)
	}
	if got := m.MutableGlobals(); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Errorf("mutable globals = %v, want [0 2]", got)
	}
	if got := m.Custom("skep.descriptor"); len(got) != 1 || string(got[0]) != `{"abi":1}` {
		t.Errorf("descriptor = %q", got)
	}
	if len(m.Memories) != 1 || m.Memories[0].Min != 3 || m.Memories[0].HasMax {
		t.Errorf("memories = %+v", m.Memories)
	}
}
