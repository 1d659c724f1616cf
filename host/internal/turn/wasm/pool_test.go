package wasm

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// idle makes some instances of a module wait: it runs as many turns at once.
func idle(t *testing.T, m *Module, n int, limits turn.Limits) {
	t.Helper()
	var all, wg sync.WaitGroup
	all.Add(n)
	for range n {
		wg.Go(func() {
			ops := opsFunc(func() { all.Done(); all.Wait() })
			wantExit(t, play(t, m, turn.Turn{Ops: ops, Limits: limits}).Exit, "", "")
		})
	}
	wg.Wait()
}

// asking makes an agent that calls one op; the number makes it another module.
func asking(number int) []byte {
	b := newBuilder()
	call := b.importFunc("skep_v1", "call", "iiiii", "I")
	return b.agent("", i32c(int64(number)), drop, i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(call), drop, ok)
}

func TestPoolKeepsToItsKey(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{})
	m, other := loadInto(t, e, asking(1)), loadInto(t, e, asking(2))
	idle(t, m, 2, turn.Limits{})
	poolOf := func(m *Module, l turn.Limits) *instancePool {
		return e.pools.poolOf(m, newRun(context.Background(), m, turn.Turn{Limits: l}).startLimits())
	}
	latest := poolOf(m, turn.Limits{}).idle[1]
	for _, tt := range []struct {
		name   string
		m      *Module
		limits turn.Limits
		same   bool
	}{
		{"another module", other, turn.Limits{}, false},
		{"another memory limit", m, turn.Limits{Memory: 1 << 20}, false},
		{"another stack", m, turn.Limits{Stack: 1 << 20}, false},
		{"another start", m, turn.Limits{Start: 1 << 20}, false},
		{"limits of the turn", m, turn.Limits{Fuel: 1 << 20, Output: 5, HostCalls: 5, HostBytes: 5, CPU: time.Second}, true},
		{"the same again", m, turn.Limits{}, true},
	} {
		before := e.Pool().Reused
		play(t, tt.m, turn.Turn{Limits: tt.limits})
		if reused := e.Pool().Reused - before; (reused == 1) != tt.same {
			t.Errorf("%s: %d reused", tt.name, reused)
		}
	}
	if s := poolOf(m, turn.Limits{}); len(s.idle) != 2 || s.idle[1] != latest {
		t.Error("not the latest instance was used")
	}
}

func TestPoolBounds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		o          Options
		one, total int // idle after four turns at once of one module, and of three
	}{
		{"no bound", Options{}, 4, 12},
		{"a module's number", Options{IdlePerModule: IdleLimits{Count: 3}}, 3, 9},
		{"a module's bytes", Options{IdlePerModule: IdleLimits{Bytes: 200 << 10}}, 2, 6},
		{"the total number", Options{IdleTotal: IdleLimits{Count: 5}}, 4, 5},
		{"the total bytes", Options{IdleTotal: IdleLimits{Bytes: 430 << 10}}, 4, 5},
		{"memory", Options{Memory: 620 << 10}, 4, 7},
		{"no memory", Options{Memory: 1}, 0, 0},
		{"none", Options{IdlePerModule: IdleLimits{Count: -1}}, 0, 0},
		{"none at all", Options{IdleTotal: IdleLimits{Count: -1}}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.o.CopyImages = true // for the same estimates everywhere
			e := engineWith(t, tt.o)
			for n := range 3 {
				idle(t, loadInto(t, e, asking(n)), 4, turn.Limits{})
				if n == 0 && e.Pool().Idle != tt.one {
					t.Errorf("%d of one module wait, want %d", e.Pool().Idle, tt.one)
				}
			}
			s := e.Pool()
			parked := uint64(12)
			if tt.o.IdlePerModule.Count < 0 || tt.o.IdleTotal.Count < 0 {
				parked = 0
			}
			if s.Idle != tt.total || s.Recycled != parked || s.Evicted != parked-uint64(tt.total) || s.Dropped != 0 {
				t.Errorf("%+v, want %d", s, tt.total)
			}
			if perInstance := int64(page + instanceBytes); s.IdleBytes > perInstance*int64(s.Idle) {
				t.Errorf("%d bytes of %d instances", s.IdleBytes, s.Idle)
			}
		})
	}
}

// The oldest instance goes first, whosever it is.
func TestPoolGivesUpTheOldest(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{IdleTotal: IdleLimits{Count: 2}})
	var modules []*Module
	for n := range 3 {
		m := loadInto(t, e, asking(n))
		modules = append(modules, m)
		play(t, m, turn.Turn{})
	}
	// The first one's instance is gone. The last one's is used again; the first
	// begins anew and pushes the second's out, and the second then the last's.
	for _, n := range []int{2, 0, 1} {
		play(t, modules[n], turn.Turn{})
	}
	if s := e.Pool(); s.Reused != 1 || s.FromImage != 5 || s.Evicted != 3 || s.Idle != 2 {
		t.Errorf("%+v", s)
	}
}

// A few instances keep their pages; they are used first.
func TestWarmInstancesAreUsedFirst(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{})
	e.pools.maxWarm = 1
	m := loadInto(t, e, asking(0))
	idle(t, m, 4, turn.Limits{})
	s := e.pools.poolOf(m, newRun(context.Background(), m, turn.Turn{}).startLimits())
	for n, want := range []bool{false, false, false, true} {
		if s.idle[n].warm != want {
			t.Errorf("instance %d: warm %v", n, s.idle[n].warm)
		}
	}
	used := s.idle[3]
	play(t, m, turn.Turn{})
	if s.idle[3] != used || !used.warm || s.warm != 1 {
		t.Errorf("the warm one was not used, or is none any more: %d are counted", s.warm)
	}
}

// What did not end well, or has grown, is never used again.
func TestNotPooled(t *testing.T) {
	t.Parallel()
	call := func(b *builder) int { return b.importFunc("skep_v1", "call", "iiiii", "I") }
	ask := func(f int) []byte {
		return join(i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(f), drop)
	}
	tests := []struct {
		name string
		wasm func(b *builder) []byte
		turn turn.Turn
		kind turn.ExitKind
	}{
		{"trap", func(b *builder) []byte { return b.agent("", unreachable) }, turn.Turn{}, turn.ExitTrap},
		{"fuel", func(b *builder) []byte { return b.agent("", forever(), ok) }, turn.Turn{Limits: turn.Limits{Fuel: fuel}}, turn.ExitFuel},
		{"stack", func(b *builder) []byte {
			f := b.fn("", "", "i", "", callf(0), i32c(1), op(0x6a))
			return b.agent("", callf(f))
		}, turn.Turn{}, turn.ExitStack},
		{"abort", func(b *builder) []byte {
			f := b.importFunc("skep_v1", "abort", "iii", "")
			return b.agent("", i32c(1), i32c(0), i32c(0), callf(f), ok)
		}, turn.Turn{}, turn.ExitAbort},
		{"exit", func(b *builder) []byte {
			f := b.importFunc(wasiModule, "proc_exit", "i", "")
			return b.agent("", i32c(0), callf(f), ok)
		}, turn.Turn{}, turn.ExitProc},
		{"failure", func(b *builder) []byte { return b.agent("", i32c(1)) }, turn.Turn{}, turn.ExitFailed},
		{"bad output", func(b *builder) []byte {
			f := b.importFunc("skep_v1", "output_write", "ii", "i")
			return b.agent("", i32c(0), i32c(1), callf(f), drop, ok)
		}, turn.Turn{}, turn.ExitFailed},
		{"too much output", func(b *builder) []byte {
			f := b.importFunc("skep_v1", "output_write", "ii", "i")
			return b.agent("", i32c(0), i32c(9), callf(f), drop, ok)
		}, turn.Turn{Limits: turn.Limits{Output: 2}}, turn.ExitOutput},
		{"a host that panics", func(b *builder) []byte {
			f := call(b)
			return b.agent("", ask(f), ok)
		}, turn.Turn{Ops: turn.OpsFunc(panicking)}, turn.ExitHost},
		{"growth", func(b *builder) []byte { return b.agent("", i32c(1), op(0x40, 0), drop, ok) }, turn.Turn{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := load(t, tt.wasm(newBuilder()))
			for range 3 {
				wantExit(t, play(t, m, tt.turn).Exit, tt.kind, limitOf(tt.kind))
			}
			if s := m.engine.Pool(); s.Idle+int(s.Recycled+s.Reused) != 0 || s.Dropped != 3 || s.FromImage != 3 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// limitOf is the key that goes with a kind of exit in TestNotPooled.
func limitOf(kind turn.ExitKind) string {
	switch kind {
	case turn.ExitFuel:
		return turn.KeyFuel
	case turn.ExitStack:
		return turn.KeyStack
	case turn.ExitOutput:
		return turn.KeyOutput
	}
	return ""
}

// A turn that was cancelled is not pooled, even when its guest did not notice.
func TestCancelledTurnIsNotPooled(t *testing.T) {
	t.Parallel()
	m := load(t, asking(0))
	ctx, cancel := context.WithCancelCause(t.Context())
	r := m.Turn(ctx, turn.Turn{Clock: newClock(), Ops: opsFunc(func() { cancel(errors.New("enough")) })})
	if s := m.engine.Pool(); s.Recycled != 0 || s.Dropped != 1 {
		t.Errorf("%v, %+v", r.Exit, s)
	}
}

// A module whose instances hold more than memory and numbers starts anew for
// every turn, and nothing lasts.
func TestModuleWithoutImage(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.table = []byte{1, 0x70, 0, 4}
	f := b.fn("", "", "", "")
	b.elems = append(b.elems, join(op(0), i32c(1), op(0x0b), uleb(1), uleb(uint64(f))))
	b.startFunc = b.fn("", "", "", "", i32c(16), i32c(7), store32(0))
	b.fn("skep_warm", "", "i", "", i32c(16), load32(0), expect32(7), ok)
	b.segment(16, "x")
	// The slot 0 of its table is empty, and no longer behind the turn.
	m := load(t, b.agent("", i32c(0), op(0x25, 0, 0xd1), expect32(1),
		i32c(0), i32c(1), op(0x25, 0), op(0x26, 0), i32c(16), load32(0), expect32(7),
		i32c(16), i32c(8), store32(0), ok))
	if want := "function 4 has a table.set"; m.NoImageReason() != want {
		t.Errorf("reason: %q, want %q", m.NoImageReason(), want)
	}
	first := play(t, m, turn.Turn{})
	for range 3 {
		r := play(t, m, turn.Turn{})
		wantExit(t, r.Exit, "", "")
		if r.Fuel != first.Fuel {
			t.Errorf("%d units, first %d", r.Fuel, first.Fuel)
		}
	}
	if s := m.engine.Pool(); s.Fresh != 4 || s.FromImage+s.Recycled+uint64(s.Images) != 0 {
		t.Errorf("%+v", s)
	}
}

// An image that would take more than its share of the limit is not kept.
func TestImageIsNotTooLarge(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.mem(40)
	fill := join(i32c(0), i32c(1), i32c(20*page), op(0xfc, 11, 0))
	b.fn("skep_warm", "", "i", "", fill, ok)
	m := load(t, b.agent("", i32c(0), load32(0), expect32(0x01010101), i32c(0), i32c(2), store32(0), ok))
	for _, tt := range []struct {
		memory int64
		images int
	}{{40 * page, 0}, {79 * page, 0}, {80 * page, 1}} {
		for range 3 {
			wantExit(t, play(t, m, turn.Turn{Limits: turn.Limits{Memory: tt.memory}}).Exit, "", "")
		}
		if s := m.engine.Pool(); s.Images != tt.images {
			t.Errorf("with %d bytes: %+v", tt.memory, s)
		}
	}
}

// Data lies where the binary says, in its order, in every instance.
func TestDataSegments(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	b.counted = true
	b.segment(8, "first")
	b.passive("passive")
	b.segment(8, "2nd")
	b.segment(20, "behind")
	b.segment(page-4, "last")
	load8 := op(0x2d, 0, 0)
	m := load(t, b.agent("",
		i32c(8), load8, expect32('2'), i32c(11), load8, expect32('s'), i32c(20), load8, expect32('b'),
		i32c(page-1), load8, expect32('t'), i32c(100), load8, expect32(0),
		i32c(100), i32c(0), i32c(7), op(0xfc, 8, 1, 0), i32c(106), load8, expect32('e'), // memory.init
		i32c(200), i32c(0), i32c(0), op(0xfc, 8, 0, 0), // an active one is empty
		i32c(8), i32c(0), store32(0), ok))
	for range 3 {
		wantExit(t, play(t, m, turn.Turn{}).Exit, "", "")
	}
	if m.NoImageReason() != "" || m.engine.Pool().Reused != 2 {
		t.Errorf("reason %q, %+v", m.NoImageReason(), m.engine.Pool())
	}

	b = newBuilder()
	b.segment(page-4, "does not fit")
	r := play(t, load(t, b.agent("", ok)), turn.Turn{})
	wantExit(t, r.Exit, turn.ExitTrap, "")
	if want := "start: data[0]: out of bounds memory access"; r.Exit.Message != want {
		t.Errorf("message %q, want %q", r.Exit.Message, want)
	}
}

// Many turns of several modules at once, good and bad, in a pool that is too
// small for them.
func TestPoolHammer(t *testing.T) {
	t.Parallel()
	e := engineWith(t, Options{IdlePerModule: IdleLimits{Count: 3}, IdleTotal: IdleLimits{Count: 5}, Memory: 3 << 20})
	var modules []*Module
	for n := range 3 {
		modules = append(modules, loadInto(t, e, asking(n)))
	}
	modules = append(modules, loadInto(t, e, patched(20)), loadInto(t, e, newBuilder().agent("", unreachable)),
		loadInto(t, e, newBuilder().agent("", i32c(1), op(0x40, 0), drop, ok)))
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for range rounds {
				hammer(modules[rnd.IntN(len(modules))], rnd)
			}
		})
	}
	wg.Wait()
	s := e.Pool()
	if s.Idle > 5 || s.Reused == 0 || s.Dropped == 0 || s.Evicted == 0 || s.FromImage+s.Reused != s.Recycled+s.Dropped {
		t.Errorf("%+v", s)
	}
}

// hammer runs one turn that may be cancelled at any moment.
func hammer(m *Module, rnd *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch rnd.IntN(4) {
	case 0:
		cancel()
	case 1:
		stop := time.AfterFunc(time.Duration(rnd.IntN(100))*time.Microsecond, cancel)
		defer stop.Stop()
	}
	limits := turn.Limits{Memory: int64(32+rnd.IntN(2)) * page}
	m.Turn(ctx, turn.Turn{Clock: newClock(), Ops: turn.OpsFunc(quiet), Limits: limits})
	m.engine.Pool()
}

// quiet answers every op with nothing.
func quiet(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return nil, nil }
