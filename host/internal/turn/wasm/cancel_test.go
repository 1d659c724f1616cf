package wasm

import (
	"context"
	"errors"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

const calledOff = -int64(abi.CodeCancelled)

// A cancelled turn: every op is refused but log and last_error, nothing
// waits any more, output goes on, and the turn can end well.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	const hour = 3_600_000
	slept := func(i importer) []byte { // the clock has not moved by the hour
		return join(i.sleeps(time.Hour), i32c(0), i64c(0), i32c(900), callf(i.now), expect32(0),
			i32c(900), op(0x29, 3, 0), i64c(newClock().now.Add(time.Minute).UnixNano()), op(0x53, 0x45, 0x04, 0x40), unreachable, op(0x0b))
	}
	tests := map[string]struct {
		late bool // cancelled while the guest waits, not before
		body func(i importer) []byte
	}{
		"before call":   {false, func(i importer) []byte { return i.calls(10, 0, 8, calledOff) }},
		"before submit": {false, func(i importer) []byte { return i.submits(30, calledOff) }},
		"before sleep":  {false, slept},
		"in call":       {true, func(i importer) []byte { return i.calls(10, 0, 8, calledOff) }},
		"in wait": {true, func(i importer) []byte {
			return join(i.submits(30, 1), i.submits(30, 2), i.waits(-1, calledOff, 1, 2), i.waits(hour, calledOff, 1, 2))
		}},
		"in read": {true, func(i importer) []byte {
			return join(i.submits(30, 1), i.reads(1, 8, calledOff), i.reads(1, 8, calledOff), i.closes(1, 0))
		}},
		"in sleep": {true, slept},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder()
			i := importAll(b)
			b.mem(1)
			b.segment(4000, "{}")
			wasm := b.agent("", tt.body(i),
				i.calls(10, 0, 8, calledOff), i.calls(1, 2, 8, 2), i.calls(0, 0, 512, int64(len(offError))),
				i32c(4000), i32c(2), callf(i.write), expect32(2), ok)
			off := make(chan struct{})
			callOff := func(*latePort) { close(off) }
			p := newLatePort(t, callOff)
			p.clock.real = true
			p.clock.asleep = func() { p.step() }
			p.call = func(ctx context.Context, _ abi.Op) ([]byte, *abi.Error) {
				p.step()
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), turn.ErrCancelled) {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return nil, turn.CancelledError(ctx, "mail")
			}
			if !tt.late {
				p.step()
			}
			r, m := p.turn(wasm, turn.Turn{Cancelled: off})
			wantExit(t, r.Exit, "", "")
			if string(r.Output) != "{}" || p.logs != 1 || len(p.script) != 0 {
				t.Errorf("output %q, %d lines of log, %d steps left", r.Output, p.logs, len(p.script))
			}
			if s := m.engine.Pool(); s.Recycled != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// offError is the answer of last_error for a mail call in a cancelled turn.
const offError = `{"code":"CANCELLED","op":"mail","reason":"cancelled","message":"the turn is called off"}`

// What has come before the call-off can be read after it.
func TestCalledOffKeepsWhatHasCome(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	off := make(chan struct{})
	wasm := b.agent("", i.submits(30, 1), i.calls(10, 0, 8, 4), i.waits(-1, calledOff, 1),
		i.reads(1, 4, 3), i.reads(1, 4, calledOff), ok)
	p := newLatePort(t)
	p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) {
		comes(0, "abc", false, nil)(p)
		close(off)
		return []byte("done"), nil // it was done before it heard of it
	}
	r, _ := p.turn(wasm, turn.Turn{Cancelled: off})
	wantExit(t, r.Exit, "", "")
}

// A guest that goes on is killed when the grace is over, whatever it does.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(i importer) []byte{
		"computing": func(importer) []byte { return forever() },
		"calling": func(i importer) []byte {
			return loop(join(i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(i.call), drop, br(0)))
		},
		"sleeping": func(i importer) []byte { return loop(join(i.sleeps(time.Hour), br(0))) },
		"waiting":  func(i importer) []byte { return loop(join(i.calls(0, 0, 0, 0), br(0))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder()
			i := importAll(b)
			wasm := b.agent("", body(i), ok)
			off := make(chan struct{})
			close(off)
			p := newLatePort(t)
			p.clock.real = true
			r, m := p.turn(wasm, turn.Turn{Cancelled: off, Limits: turn.Limits{Grace: time.Millisecond}})
			wantExit(t, r.Exit, turn.ExitCancelled, "limits.grace")
			if !errors.Is(r.Exit, turn.ErrCancelled) || m.engine.Pool().Recycled != 0 {
				t.Errorf("%v, %+v", r.Exit, m.engine.Pool())
			}
		})
	}
}

// A cancelled turn that fails has failed; a turn that is not cancelled has
// no grace to end.
func TestCalledOffAndFailed(t *testing.T) {
	t.Parallel()
	off := make(chan struct{})
	m := load(t, newBuilder().agent("", i32c(1)))
	wantExit(t, play(t, m, turn.Turn{Cancelled: off}).Exit, turn.ExitFailed, "")
	close(off)
	wantExit(t, play(t, m, turn.Turn{Cancelled: off}).Exit, turn.ExitFailed, "")
	loop := load(t, newBuilder().agent("", forever(), ok))
	r := play(t, loop, turn.Turn{Cancelled: make(chan struct{}), Limits: turn.Limits{Fuel: fuel, Grace: 1}})
	wantExit(t, r.Exit, turn.ExitFuel, turn.KeyFuel)
}

// The start of a module belongs to no turn: it is not cancelled.
func TestStartIsNotCalledOff(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	b.fn("skep_warm", "", "i", "", i.calls(1, 2, 8, 2), i.sleeps(time.Hour), i.submits(1, 1), i.waits(-1, 0, 1),
		i.reads(1, 8, 2), i.submits(10, 2), i.reads(2, 8, -int64(abi.CodeDenied)), i.submits(0, 3), ok)
	b.mem(1)
	b.segment(0, "{}")
	off := make(chan struct{})
	close(off)
	r, _ := newLatePort(t).turn(b.agent("", i.calls(10, 0, 8, calledOff), ok), turn.Turn{Cancelled: off})
	wantExit(t, r.Exit, "", "")
}
