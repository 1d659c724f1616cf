package binary_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"skep/host/internal/turn/wasm/binary"
)

// hostile are functions () -> () of a module with a memory of 64 pages, a table
// of 10,000 elements, a passive data segment of 128 KiB, a passive element
// segment of 5,000, and a counter in global 0.
var hostile = []struct {
	name string
	code []byte
	want error
	max  uint64 // counter at the kill: how often the body of the loop may have run
}{
	{"loop", loop(br(0)), errOutOfFuel, 0},
	{"loop br_if", loop(konst(1), brIf(0)), errOutOfFuel, 0},
	{"loop br_table", loop(konst(7), brTable(0, 0, 0)), errOutOfFuel, 0},
	{"loop over blocks", loop(block(block(konst(1), brTable(0, 1, 2))), br(0)), errOutOfFuel, 0},
	{"two loops", loop(loop(konst(1), brIf(1), br(0))), errOutOfFuel, 0},
	{"loop of counts", loop(count, br(0)), errOutOfFuel, 1_000_000 / 5},
	{"loop of divisions", loop(konst(7), konst(3), op(iDivU, drop), count, br(0)), errOutOfFuel, 1_000_000 / 16},
	{"loop of grow", loop(konst(0), op(memGrow, 0, drop), count, br(0)), errOutOfFuel, 1_000_000 / 64},
	{"loop of refused grow", loop(konst(-1), op(memGrow, 0, drop), count, br(0)), errOutOfFuel, 1_000_000 / 64},
	{"loop of calls", loop(call(hCount), br(0)), errOutOfFuel, 1_000_000 / 9},
	{"recursion", call(hRecurse), errOutOfStack, 0},
	{"mutual recursion", call(hPing), errOutOfStack, 0},
	{"indirect recursion", call(hIndirect), errOutOfStack, 0},
	{"recursion that branches", cat(konst(60), call(hFib), op(drop)), errOutOfFuel, 0},
	{"fill", loop(konst(0), konst(1), konst(64<<16), misc(miFill, 0), count, br(0)), errOutOfFuel, 4},
	{"copy up", loop(konst(1), konst(0), konst(63<<16), misc(miCopy, 0, 0), count, br(0)), errOutOfFuel, 4},
	{"copy down", loop(konst(0), konst(1), konst(63<<16), misc(miCopy, 0, 0), count, br(0)), errOutOfFuel, 4},
	{"init", loop(konst(0), konst(0), konst(128<<10), misc(miInit, 0, 0), count, br(0)), errOutOfFuel, 1_000_000 / (128 << 10 >> 4)},
	{"small fill", loop(konst(0), konst(0), konst(60000), misc(miFill, 0), count, br(0)), errOutOfFuel, 1_000_000 / (60000 >> 4)},
	{"table fill", loop(konst(0), op(refNull, nullFunc), konst(10000), misc(tiFill, 0), count, br(0)), errOutOfFuel, 200},
	{"table copy", loop(konst(0), konst(1), konst(9999), misc(tiCopy, 0, 0), count, br(0)), errOutOfFuel, 1_000_000 / 4999},
	{"table init", loop(konst(0), konst(0), konst(5000), misc(tiInit, 0, 0), count, br(0)), errOutOfFuel, 1_000_000 / 2500},
	{"table grow by nothing", loop(op(refNull, nullFunc), konst(0), misc(tiGrow, 0), op(drop), count, br(0)), errOutOfFuel, 1_000_000 / 64},
	{"fill out of bounds", cat(konst(1), konst(1), konst(64<<16), misc(miFill, 0)), errTrap, 0},
	{"long code", loop(repeat(7000, konst(1), op(drop)), br(0)), errOutOfFuel, 0},
}

var errTrap = errors.New("a trap")

// count adds one to the counter: four units.
var count = cat(gget(0), konst(1), op(iAdd), gset(0))

// Functions of the module below, by index.
const (
	hCount = iota
	hRecurse
	hPing
	hPong
	hIndirect
	hFib
	hHelpers // number of them
)

// hostileModule holds all of them, exported by name.
func hostileModule() []byte {
	b := &builder{}
	none := b.typ(nil, nil)
	unary := b.typ([]byte{i32}, []byte{i32})
	b.memory(64)
	b.table(funcref, 10_000)
	b.global(i32, 0)
	b.export("counter", 3, 0)
	b.export("memory", 2, 0)
	b.passive(make([]byte, 128<<10))
	b.fn(none, nil, count)
	b.fn(none, nil, call(hRecurse))
	b.fn(none, nil, call(hPong))
	b.fn(none, nil, call(hPing))
	b.fn(none, nil, konst(0), indirect(none))
	b.fn(unary, nil, get(0), konst(2), op(iLtU, 0x04, i32), get(0), op(0x05),
		get(0), konst(1), op(iSub), call(hFib), get(0), konst(2), op(iSub), call(hFib), op(iAdd, end))
	b.add(sElem, cat([]byte{1, 0}, uleb(5000), repeat(5000, uleb(hCount)))...)
	b.elem(hIndirect)
	for _, h := range hostile {
		b.exportFn(h.name, b.fn(none, nil, h.code))
	}
	return b.bytes()
}

func TestHostileGuestsAreStopped(t *testing.T) {
	wasm := hostileModule()
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			first, counter := stopped(t, wasm, h.name, h.want)
			if counter > h.max && h.max != 0 {
				t.Errorf("the loop ran %d times, want at most %d", counter, h.max)
			}
			if again, _ := stopped(t, wasm, h.name, h.want); again != first {
				t.Errorf("fuel %d, then %d", first, again)
			}
		})
	}
}

// stopped runs a function until it is killed.
func stopped(t *testing.T, wasm []byte, name string, want error) (fuel int64, counter uint64) {
	t.Helper()
	h := &fuelHost{grant: 10_000, budget: 1_000_000}
	i := instantiate(t, wasm, h, binary.Options{})
	_, err := i.call(t, name)
	if want == errTrap {
		if err == nil || errors.Is(err, errOutOfFuel) || errors.Is(err, errOutOfStack) {
			t.Fatalf("%s = %v, want a trap", name, err)
		}
	} else if !errors.Is(err, want) {
		t.Fatalf("%s = %v, want %v", name, err, want)
	}
	return h.used(i.mod), i.mod.ExportedGlobal("counter").Get()
}

func TestStartIsMetered(t *testing.T) {
	b := &builder{}
	b.start(b.fn(b.typ(nil, nil), nil, loop(br(0))))
	r := newRuntime(t, compiler())
	(&fuelHost{grant: 10_000, budget: 100_000}).link(t, r)
	_, err := r.InstantiateWithConfig(t.Context(), mustMeter(t, b.bytes(), binary.Options{}), wazero.NewModuleConfig())
	if !errors.Is(err, errOutOfFuel) {
		t.Fatalf("Instantiate = %v, want %v", err, errOutOfFuel)
	}
}

func TestFuelOfWays(t *testing.T) {
	tests := []struct {
		name string
		code []byte
		arg  uint64
		want int64
	}{
		{"nothing", nil, 0, 0},
		{"straight", repeat(10, konst(1), op(drop)), 0, 20},
		{"free", cat(op(0x01), block(op(0x01))), 0, 0},
		{"long straight", repeat(5000, konst(1), op(drop)), 0, 10_000},
		{"weights", cat(konst(1), konst(1), op(iDivU, drop)), 0, 11},
		{"float division", cat(op(0x43, 0, 0, 0, 0), op(0x43, 0, 0, 0, 0), op(0x95, drop)), 0, 7},
		{"square root", cat(op(0x43, 0, 0, 0, 0), op(0x91, drop)), 0, 6},
		{"ref.func", cat(opU(refFunc, 1), op(drop)), 0, 65},
		{"load", cat(konst(0), opU(load32, 2, 0), op(drop)), 0, 3},
		{"if takes the longer arm", cat(get(0), ifThen(repeat(9, konst(1), op(drop)))), 0, 20},
		{"else", cat(get(0), op(0x04, empty), konst(1), op(drop, 0x05), repeat(4, konst(1), op(drop)), op(end)), 1, 10},
		{"br skips", block(br(0), repeat(50, konst(1), op(drop))), 0, 1},
		{"br_table takes the longest", cat(
			block(block(get(0), brTable(0, 1)), repeat(10, konst(1), op(drop)))), 1, 22},
		{"loop once", loop(konst(1), op(drop)), 0, 2},
		{"loop n times", loop(get(0), konst(1), op(iSub), tee(0), brIf(0)), 6, 30},
		{"behind a loop, far", cat(loop(get(0), konst(1), op(iSub), tee(0), brIf(0)), repeat(9, konst(1), op(drop))), 6, 48},
		{"behind a loop that is left", cat(
			block(loop(get(0), op(iEqz), brIf(1), get(0), konst(1), op(iSub), set(0), br(0))),
			repeat(9, konst(1), op(drop))), 6, 6*8 + 8 + 18},
		{"behind a loop", cat(loop(get(0), konst(1), op(iSub), tee(0), brIf(0)), konst(1), op(drop)), 6, 42},
		{"call", call(0), 0, 4},
		{"small fill", cat(konst(0), konst(0), konst(320), misc(miFill, 0)), 0, 19 + 20},
		{"big fill", cat(konst(0), konst(0), konst(1<<20), misc(miFill, 0)), 0, 19 + 1<<16},
		{"grow", cat(konst(2), op(memGrow, 0, drop)), 0, 66 + 2*4096},
		{"grow refused", cat(konst(-2), op(memGrow, 0, drop)), 0, 66},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &builder{}
			b.memory(16)
			b.fn(b.typ(nil, nil), nil)
			b.exportFn("f", b.fn(b.typ([]byte{i32}, nil), nil, tt.code))
			i := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{})
			if _, err := i.call(t, "f", tt.arg); err != nil {
				t.Fatal(err)
			}
			if got := i.used(i.mod); got != tt.want {
				t.Errorf("fuel = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestTablesAreCapped(t *testing.T) {
	b := &builder{}
	b.table(funcref, 10)
	b.table(externref, 20)
	b.add(sTable, funcref, 1, 5, 7)
	grow := b.typ([]byte{i32}, []byte{i32})
	for i, name := range []string{"a", "b", "c"} {
		null := byte(funcref)
		if i == 1 {
			null = externref
		}
		b.exportFn(name, b.fn(grow, nil, op(refNull, null), get(0), misc(tiGrow, uint64(i))))
		b.exportFn(name+" size", b.fn(b.typ(nil, []byte{i32}), nil, misc(tiSize, uint64(i))))
	}
	i := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{})
	total := uint64(0)
	for _, name := range []string{"a", "b", "c"} {
		for step := uint64(1 << 20); step > 0; step /= 2 {
			if _, err := i.call(t, name, step); err != nil {
				t.Fatal(err)
			}
		}
		size, err := i.call(t, name+" size")
		if err != nil {
			t.Fatal(err)
		}
		total += size[0]
	}
	if want := uint64(binary.DefaultCaps().TableElements); total != want {
		t.Errorf("all tables grew to %d elements, want %d", total, want)
	}
}

func TestStackIsGivenBack(t *testing.T) {
	b := &builder{}
	b.fn(b.typ(nil, nil), nil)
	b.exportFn("f", b.fn(b.typ([]byte{i32}, []byte{i32, i32}), nil, call(0),
		block(
			block(block(get(0), brTable(0, 1, 2)), konst(1), konst(2), op(ret)),
			konst(3), konst(4), br(1),
		),
		konst(5), konst(6), get(0), konst(7), op(iEq), brIf(0), op(drop, drop),
		konst(7), konst(8)))
	i := instantiate(t, b.bytes(), &fuelHost{}, binary.Options{Stack: 4096})
	for arg, want := range map[uint64]uint64{0: 1, 1: 3, 2: 7, 7: 5} {
		got, err := i.call(t, "f", arg)
		if err != nil || got[0] != want || got[1] != want+1 {
			t.Errorf("f(%d) = %v, %v, want [%d %d]", arg, got, err, want, want+1)
		}
		if left := i.mod.ExportedGlobal(binary.GlobalStack).Get(); left != 4096 {
			t.Errorf("f(%d) leaves %d bytes of stack, want 4096", arg, left)
		}
	}
}

// The counter, not the engine's own limit, ends recursion, also where a frame is
// much larger than the function looks.
func TestStackEndsBeforeTheEngine(t *testing.T) {
	const self = 0
	locals := func(n int, code func(i int) []byte) (all []byte) {
		for i := range n {
			all = append(all, code(i)...)
		}
		return all
	}
	tests := []struct {
		name   string
		params []byte
		locals []uint64
		code   []byte
	}{
		{"small", nil, nil, call(self)},
		{"parameters", make32(200), nil, cat(locals(200, get), call(self))},
		{"assignments between calls", nil, []uint64{250, i32}, cat(
			repeat(3, locals(250, func(i int) []byte { return cat(gget(0), set(i)) }), gget(0), ifThen(call(self))),
			locals(250, func(i int) []byte { return cat(get(i), gset(0)) }), konst(1), gset(0), call(self))},
		{"operands below calls", nil, nil, cat(
			repeat(200, gget(0)), gget(0), ifThen(call(self)), repeat(200, gset(0)), call(self))},
		{"vectors", nil, []uint64{100, v128}, cat(
			locals(100, func(i int) []byte { return cat(gget(0), op(0xfd, 0x11), set(i)) }), call(self),
			locals(100, func(i int) []byte { return cat(get(i), op(0xfd, 0x1b, 0), gset(0)) }))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &builder{}
			b.global(i32, 1)
			b.exportFn("f", b.fn(b.typ(tt.params, nil), tt.locals, tt.code))
			i := instantiate(t, b.bytes(), &fuelHost{grant: 1 << 40}, binary.Options{})
			if _, err := i.call(t, "f", make([]uint64, len(tt.params))...); !errors.Is(err, errOutOfStack) {
				t.Errorf("%v, want %v", err, errOutOfStack)
			}
		})
	}
}

func TestMutableGlobalsAreExported(t *testing.T) {
	b := &builder{}
	b.global(i32, 5)
	b.add(sGlobal, i32, 0, 0x41, 6, end)
	b.global(i64, 7)
	wasm := cat(b.bytes(), op(0), vec(name("skep.descriptor")))
	i := instantiate(t, wasm, &fuelHost{}, binary.Options{Slice: 10})
	for name, want := range map[string]uint64{
		binary.GlobalPrefix + "0": 5, binary.GlobalPrefix + "1": 7,
		binary.GlobalSlice: 10, binary.GlobalStack: binary.DefaultStack,
	} {
		g, ok := i.mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok || g.Get() != want {
			t.Errorf("%s = %v, want a mutable global of %d", name, g, want)
		}
	}
	if i.mod.ExportedGlobal(binary.GlobalPrefix+"2") != nil {
		t.Error("a constant is exported")
	}
	if bytes.Contains(mustMeter(t, wasm, binary.Options{}), []byte("descriptor")) {
		t.Error("a custom section is left")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	m, err := binary.Admit((&builder{}).bytes(), binary.DefaultCaps())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []binary.Options{{Stack: -1}, {Slice: -1}} {
		if _, err := m.Meter(o); err == nil {
			t.Errorf("Meter(%+v) succeeds", o)
		}
	}
}
