package binary_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"skep/host/internal/guests"
	"skep/host/internal/turn/wasm/binary"
)

// dear are modules within all other caps, each with a product of its own.
var dear = []struct {
	name string
	make func() []byte
}{
	{"ifs over locals", func() []byte {
		return oneFunction(nil, cat([]byte{1}, uleb(250), []byte{i32}, repeat(4000, get(0), ifThen(get(1), set(2))), op(end)))
	}},
	{"ifs behind each other", func() []byte {
		return oneFunction(nil, cat([]byte{0}, repeat(8000, konst(0), ifThen()), op(end)))
	}},
	{"br_ifs behind each other", func() []byte {
		return oneFunction(nil, cat([]byte{0}, repeat(8000, konst(0), brIf(0)), op(end)))
	}},
	{"loops behind each other", func() []byte {
		return oneFunction(nil, cat([]byte{1, 8, i32}, repeat(2000, loop(get(0), tee(1), brIf(0))), op(end)))
	}},
	{"loops in each other", func() []byte {
		return oneFunction(nil, cat([]byte{1}, uleb(200), []byte{i32}, repeat(500, op(0x03, empty)), readLocals(200),
			repeat(501, op(end))))
	}},
	{"copies in a loop", func() []byte {
		var copies []byte
		for i := 1; i < 250; i++ {
			copies = append(copies, cat(get(i), set(i-1))...)
		}
		return oneFunction(nil, cat([]byte{1}, uleb(250), []byte{i32}, loop(copies, konst(0), brIf(0)),
			repeat(30, setLocals(250), readLocals(250)), op(end)))
	}},
	{"one end for many branches", func() []byte {
		return oneFunction(nil, cat([]byte{1}, uleb(250), []byte{i32},
			block(repeat(5000, konst(0), brIf(0)), setLocals(250)), readLocals(250), op(end)))
	}},
	{"labels that carry operands", func() []byte { return passing(konst(0), brTable(make([]uint64, 9000)...), op(unreachable)) }},
	{"branches that carry operands", func() []byte { return passing(repeat(9000, konst(0), brIf(0))) }},
	{"calls with operands", func() []byte {
		b := &builder{}
		f := b.fn(b.typ(nil, make32(250)), nil, repeat(250, konst(0)))
		g := b.fn(b.typ(make32(250), nil), nil)
		b.fn(b.typ(nil, nil), nil, repeat(5000, call(f), call(g)))
		return b.bytes()
	}},
	{"calls through a table", func() []byte {
		b := &builder{}
		b.table(funcref, 1)
		none := b.typ(nil, nil)
		b.fn(none, nil, repeat(10_000, konst(0), indirect(none)))
		return b.bytes()
	}},
	{"globals that change", func() []byte {
		b := &builder{}
		for range 200 {
			b.global(i32, 0)
		}
		var body []byte
		for i := range 2000 {
			body = append(body, cat(gget(i%200), ifThen(konst(0), gset(i%200)))...)
		}
		b.fn(b.typ(nil, nil), nil, body)
		return b.bytes()
	}},
	{"loads", func() []byte {
		b := &builder{}
		b.memory(1)
		b.fn(b.typ(nil, nil), nil, konst(0), repeat(21_000, op(load32, 0, 0)), op(drop))
		return b.bytes()
	}},
	{"small functions behind a large one", func() []byte {
		b := &builder{}
		none := b.typ(nil, nil)
		b.fn(none, nil, konst(0), brTable(make([]uint64, 3000)...))
		for range 20_000 {
			b.fn(none, nil, op(0x01))
		}
		return b.bytes()
	}},
}

// readLocals keeps locals alive up to here.
func readLocals(n int) (code []byte) {
	for i := range n {
		code = append(code, cat(get(i), op(drop))...)
	}
	return code
}

// setLocals gives them all one value.
func setLocals(n int) []byte {
	code := konst(7)
	for i := range n {
		code = append(code, tee(i)...)
	}
	return append(code, drop)
}

// passing is code in a block that leaves many operands.
func passing(code ...[]byte) []byte {
	const n = 200
	b := &builder{}
	wide := b.typ(nil, make32(n))
	b.fn(b.typ(nil, nil), nil, opU(0x02, uint64(wide)), repeat(n, konst(0)), cat(code...), op(end), repeat(n, op(drop)))
	return b.bytes()
}

func TestDearModulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, d := range dear {
		wasm := d.make()
		_, err := binary.Admit(wasm, binary.DefaultCaps())
		checkRefusal(t, err, "compile_work")
		if err != nil && !strings.Contains(err.Error(), "above all function ") {
			t.Errorf("%s: %v does not name a function", d.name, err)
		}
		m, err := binary.Admit(wasm, binary.InspectionCaps())
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		if got := m.Usage().CompileWork; got <= binary.DefaultCaps().CompileWork {
			t.Errorf("%s: usage %d", d.name, got)
		}
	}
}

// The cap names the body that takes most, not the one at which it was reached.
func TestWorkNamesTheHardest(t *testing.T) {
	t.Parallel()
	b := &builder{}
	none := b.typ(nil, nil)
	b.fn(none, nil)
	b.fn(none, nil, repeat(1000, konst(0), ifThen()))
	for range 60 {
		b.fn(none, nil, repeat(300, konst(0), ifThen()))
	}
	_, err := binary.Admit(b.bytes(), binary.DefaultCaps())
	var limit *binary.CapError
	if !errors.As(err, &limit) || limit.Where != "code, above all function 1" {
		t.Errorf("Admit = %v", err)
	}
}

// What compilers write stays well below the cap.
func TestWorkOfRealGuests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plugins/script", "plugins/calculator", "testguests/conform", "testguests/rude"} {
		m, err := binary.Admit(guests.Bytes(t, name), binary.DefaultCaps())
		if err != nil {
			t.Fatal(err)
		}
		if got, most := m.Usage().CompileWork, binary.DefaultCaps().CompileWork*2/3; got > most {
			t.Errorf("%s: %d, more than two thirds of the cap", name, got)
		}
	}
}

// Code that cannot be reached costs nothing, and branches in it join nothing: what
// follows lies as deep as it does.
func TestWorkOfDeadCode(t *testing.T) {
	t.Parallel()
	work := func(code ...[]byte) int64 {
		m, err := binary.Admit(oneFunction(nil, cat(op(0), cat(code...), op(end))), binary.InspectionCaps())
		if err != nil {
			t.Fatal(err)
		}
		return m.Usage().CompileWork
	}
	ifs := repeat(3000, konst(0), ifThen())
	if alive, dead := work(ifs), work(op(unreachable), ifs); dead > 1 || alive < 1000 {
		t.Errorf("alive %d, dead %d", alive, dead)
	}
	// A block that only its end reaches, deep down; and the same with a dead
	// branch from its start.
	straight := work(block(ifs), ifs)
	branched := work(block(block(op(unreachable), block(konst(0), brIf(1))), ifs), ifs)
	shortcut := work(block(konst(0), brIf(0), ifs), ifs)
	if branched > 1 || shortcut >= straight {
		t.Errorf("straight %d, dead branch %d, live branch %d", straight, branched, shortcut)
	}
	// Two arms: one that goes on and one that leaves make no short way either.
	leaving := work(konst(0), op(0x04, empty), ifs, op(0x05, ret, end), ifs)
	if leaving < straight {
		t.Errorf("straight %d, behind an arm that leaves %d", straight, leaving)
	}
}

// The estimate stays at the largest number where the true one does not fit, and
// more code never lowers it.
func TestWorkNeverOverflows(t *testing.T) {
	t.Parallel()
	for _, locals := range []uint64{1, 256, 257, 50_000, math.MaxInt32} {
		last := int64(0)
		for n := 1; n <= 1<<12; n *= 4 {
			wasm := oneFunction(nil, cat([]byte{1}, uleb(locals), []byte{i32},
				repeat(n, op(0x03, empty), get(0), set(0), konst(0), brIf(0)), repeat(n, op(end)), op(end)))
			m, err := binary.Admit(wasm, binary.InspectionCaps())
			if err != nil {
				t.Fatal(err)
			}
			got := m.Usage().CompileWork
			if got < last || got < 1 {
				t.Fatalf("%d locals, %d loops: %d after %d", locals, n, got, last)
			}
			last = got
		}
	}
	const most = math.MaxUint64
	for _, v := range []struct{ got, want uint64 }{
		{binary.Plus(most, 1), most}, {binary.Plus(most, most), most}, {binary.Plus(2, 3), 5},
		{binary.Times(1<<32, 1<<32), most}, {binary.Times(most, 2), most}, {binary.Times(6, 7), 42},
	} {
		if v.got != v.want {
			t.Errorf("got %d, want %d", v.got, v.want)
		}
	}
}
