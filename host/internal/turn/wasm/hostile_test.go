package wasm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// fuel is a budget that a hostile guest uses up in milliseconds.
const fuel = 5_000_000

func TestHostileGuests(t *testing.T) {
	t.Parallel()
	write := func(b *builder) int { return b.importFunc("skep_v1", "output_write", "ii", "i") }
	fib := func(b *builder) int { // without a loop, and exponential
		self := len(b.imports)
		return b.fn("", "i", "i", "", get(0), i32c(2), op(0x48, 0x04, 0x7f), get(0), op(0x05),
			get(0), i32c(1), op(0x6b), callf(self), get(0), i32c(2), op(0x6b), callf(self), op(0x6a), op(0x0b))
	}
	tests := []struct {
		name   string
		wasm   func() []byte
		limits turn.Limits
		kind   turn.ExitKind
		limit  string
	}{
		{"a loop", func() []byte { return newBuilder().agent("", forever(), ok) },
			turn.Limits{Fuel: fuel}, turn.ExitFuel, "limits.fuel"},
		{"a loop, by time", func() []byte { return newBuilder().agent("", forever(), ok) },
			turn.Limits{Fuel: 1 << 60, CPU: 20 * time.Millisecond}, turn.ExitCPU, "limits.cpu"},
		{"recursion without a loop", func() []byte {
			b := newBuilder()
			f := fib(b)
			return b.agent("", i32c(60), callf(f))
		}, turn.Limits{Fuel: fuel}, turn.ExitFuel, "limits.fuel"},
		{"endless recursion", func() []byte {
			b := newBuilder()
			f := b.fn("", "", "i", "", callf(0), i32c(1), op(0x6a))
			return b.agent("", callf(f))
		}, turn.Limits{}, turn.ExitStack, "limits.stack"},
		{"a small stack", func() []byte {
			b := newBuilder()
			f := fib(b)
			return b.agent("", i32c(12), callf(f), drop, ok)
		}, turn.Limits{Stack: 512}, turn.ExitStack, "limits.stack"},
		{"growing memory", func() []byte { // until it is refused, which is no fault
			return newBuilder().agent("", loop(join(i32c(16), op(0x40, 0), i32c(-1), op(0x47), brIf(0))), ok)
		}, turn.Limits{Memory: 32 << 20}, "", ""},
		{"memory above the limit at once", func() []byte {
			b := newBuilder()
			b.mem(100)
			return b.agent("", ok)
		}, turn.Limits{Memory: 1 << 20}, turn.ExitMemory, "limits.memory"},
		{"growing a table", func() []byte { // refused at the cap
			b := newBuilder()
			b.table = []byte{1, 0x70, 0, 1}
			grow := join(op(0xd0, 0x70), i32c(1000), op(0xfc, 15, 0), i32c(-1), op(0x47), brIf(0))
			return b.agent("", loop(grow), op(0xfc, 16, 0), i32c(100_001), op(0x49), expect32(1), ok)
		}, turn.Limits{}, "", ""},
		{"too much output", func() []byte {
			b := newBuilder()
			f := write(b)
			return b.agent("", loop(join(i32c(0), i32c(60000), callf(f), i32c(0), op(0x4a), brIf(0))), ok)
		}, turn.Limits{}, turn.ExitOutput, "limits.output"},
		{"unreachable", func() []byte { return newBuilder().agent("", unreachable) }, turn.Limits{}, turn.ExitTrap, ""},
		{"division by zero", func() []byte { return newBuilder().agent("", i32c(1), i32c(0), op(0x6d)) }, turn.Limits{}, turn.ExitTrap, ""},
		{"outside its memory", func() []byte { return newBuilder().agent("", i32c(-8), load32(0)) }, turn.Limits{}, turn.ExitTrap, ""},
		{"trap in start", func() []byte {
			b := newBuilder()
			b.startFunc = b.fn("", "", "", "", unreachable)
			return b.agent("", ok)
		}, turn.Limits{}, turn.ExitTrap, ""},
		{"loop in start", func() []byte {
			b := newBuilder()
			b.startFunc = b.fn("", "", "", "", forever())
			return b.agent("", ok)
		}, turn.Limits{Start: fuel}, turn.ExitFuel, "limits.fuel"},
		{"trap in _initialize", func() []byte {
			b := newBuilder()
			b.fn("_initialize", "", "", "", unreachable)
			return b.agent("", ok)
		}, turn.Limits{}, turn.ExitTrap, ""},
		{"loop in _initialize", func() []byte {
			b := newBuilder()
			b.fn("_initialize", "", "", "", forever())
			return b.agent("", ok)
		}, turn.Limits{Start: fuel}, turn.ExitFuel, "limits.fuel"},
		{"skep_warm fails", func() []byte {
			b := newBuilder()
			b.fn("skep_warm", "", "i", "", i32c(1))
			return b.agent("", ok)
		}, turn.Limits{}, turn.ExitFailed, ""},
		{"status 1", func() []byte { return newBuilder().agent("", i32c(1)) }, turn.Limits{}, turn.ExitFailed, ""},
		{"status 2", func() []byte { return newBuilder().agent("", i32c(2)) }, turn.Limits{}, turn.ExitFailed, ""},
		{"status 77", func() []byte { return newBuilder().agent("", i32c(77)) }, turn.Limits{}, turn.ExitFailed, ""},
		{"output that is no turn result", func() []byte {
			b := newBuilder()
			f := write(b)
			b.mem(1)
			b.segment(0, "[1]")
			return b.agent("", i32c(0), i32c(3), callf(f), drop, ok)
		}, turn.Limits{}, turn.ExitFailed, ""},
		{"proc_exit", func() []byte {
			b := newBuilder()
			f := b.importFunc(wasiModule, "proc_exit", "i", "")
			return b.agent("", i32c(0), callf(f), ok)
		}, turn.Limits{}, turn.ExitProc, ""},
		{"abort", func() []byte {
			b := newBuilder()
			f := b.importFunc("skep_v1", "abort", "iii", "")
			return b.agent("", i32c(11), i32c(0), i32c(0), callf(f), ok)
		}, turn.Limits{}, turn.ExitAbort, ""},
		{"too many host calls", func() []byte {
			b := newBuilder()
			f := b.importFunc("skep_v1", "call", "iiiii", "I")
			return b.agent("", loop(join(i32c(1), i32c(0), i32c(0), i32c(0), i32c(0), callf(f), drop, br(0))), ok)
		}, turn.Limits{Fuel: fuel}, turn.ExitFuel, "limits.fuel"},
		{"too many bytes in host calls", func() []byte {
			b := newBuilder()
			f := b.importFunc("skep_v1", "call", "iiiii", "I")
			return b.agent("", loop(join(i32c(10), i32c(0), i32c(60000), i32c(0), i32c(8), callf(f), drop, br(0))), ok)
		}, turn.Limits{Fuel: fuel}, turn.ExitFuel, "limits.fuel"},
		{"random bytes without end", func() []byte {
			b := newBuilder()
			f := b.importFunc(wasiModule, "random_get", "ii", "i")
			b.mem(512)
			return b.agent("", loop(join(i32c(0), i32c(32<<20), callf(f), drop, br(0))), ok)
		}, turn.Limits{Fuel: 20_000_000}, turn.ExitFuel, "limits.fuel"},
		{"filling memory without end", func() []byte {
			b := newBuilder()
			b.mem(512)
			return b.agent("", loop(join(i32c(0), i32c(1), i32c(32<<20), op(0xfc, 11, 0), br(0))), ok)
		}, turn.Limits{Fuel: 20_000_000}, turn.ExitFuel, "limits.fuel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := load(t, tt.wasm())
			first := play(t, m, turn.Turn{Limits: tt.limits})
			wantExit(t, first.Exit, tt.kind, tt.limit)
			if limit := tt.limits.WithDefaults(); first.Memory > limit.Memory || first.Fuel > limit.Fuel+10_000 {
				t.Errorf("used %d bytes and %d units, limits %+v", first.Memory, first.Fuel, limit)
			}
			if tt.kind == turn.ExitCPU {
				return // the one outcome that depends on the machine
			}
			second := play(t, m, turn.Turn{Limits: tt.limits})
			if second.Fuel != first.Fuel || fmt.Sprint(second.Exit) != fmt.Sprint(first.Exit) {
				t.Errorf("again: %d units, %v; first %d, %v", second.Fuel, second.Exit, first.Fuel, first.Exit)
			}
		})
	}
}

func TestContextEndsAnyGuest(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	poll := b.importFunc(wasiModule, "poll_oneoff", "iiii", "i")
	b.mem(1)
	// Sleep an hour: clock 1, relative.
	sleeper := b.agent("", i32c(16), i32c(1), store32(0), i32c(24), i64c(int64(time.Hour)), store64(0),
		i32c(0), i32c(64), i32c(1), i32c(128), callf(poll), drop, ok)
	looper := newBuilder().agent("", forever(), ok)
	caller := newBuilder()
	f := caller.importFunc("skep_v1", "call", "iiiii", "I")
	blocked := caller.agent("", i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(f), drop, ok)

	reason := errors.New("the operator said so")
	for name, wasm := range map[string][]byte{"loop": looper, "sleep": sleeper, "blocked op": blocked} {
		ops := &fakeOps{answer: func(ctx context.Context, _ abi.Op, _ []byte) ([]byte, *abi.Error) {
			<-ctx.Done()
			return nil, abi.Errorf(abi.CodeCancelled, abi.OpMail, "", "gone")
		}}
		endless := turn.Turn{Ops: ops, Limits: turn.Limits{Fuel: 1 << 60, CPU: time.Hour}}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := load(t, wasm)
			deadline, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, reason)
			defer cancel()
			endless.Clock = &fakeClock{real: true}
			start := time.Now()
			r := m.Turn(deadline, endless)
			wantExit(t, r.Exit, turn.ExitDeadline, "limits.turn")
			if !errors.Is(r.Exit, reason) {
				t.Errorf("%v does not carry the cause", r.Exit)
			}
			if late := time.Since(start); late > 5*time.Second {
				t.Errorf("ended after %v", late)
			}

			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(30*time.Millisecond, func() { stop(reason) })
			endless.Clock = &fakeClock{real: true}
			r = m.Turn(ctx, endless)
			wantExit(t, r.Exit, turn.ExitCancelled, "")
			if !errors.Is(r.Exit, reason) {
				t.Errorf("%v does not carry the cause", r.Exit)
			}

			stop(reason)
			wantExit(t, m.Turn(ctx, endless).Exit, turn.ExitCancelled, "")
		})
	}
}

func TestHostPanicIsNotTheGuests(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	f := b.importFunc("skep_v1", "call", "iiiii", "I")
	m := load(t, b.agent("", i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(f), drop, ok))
	r := play(t, m, turn.Turn{Ops: turn.OpsFunc(panicking)})
	wantExit(t, r.Exit, turn.ExitHost, "")
}

func panicking(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { panic("a bug") }
