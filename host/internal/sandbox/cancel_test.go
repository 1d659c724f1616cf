package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"skep/abi"
)

const calledOff = -int64(abi.CodeCancelled)

// A turn that is called off: every op is refused but log and last_error, nothing
// waits any more, output goes on, and the turn can end well.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	const hour = 3_600_000
	slept := func(i importer) []byte { // the clock has not moved by the hour
		return join(i.sleeps(time.Hour), i32c(0), i64c(0), i32c(900), callf(i.now), expect32(0),
			i32c(900), op(0x29, 3, 0), i64c(newClock().now.Add(time.Minute).UnixNano()), op(0x53, 0x45, 0x04, 0x40), unreachable, op(0x0b))
	}
	tests := map[string]struct {
		late bool // called off while the guest waits, not before
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
				if !errors.Is(context.Cause(ctx), errCalledOff) {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				return nil, CalledOff(ctx, "mail")
			}
			if !tt.late {
				p.step()
			}
			r, m := p.turn(wasm, Turn{Cancelled: off})
			wantExit(t, r.Exit, "", "")
			if string(r.Output) != "{}" || p.logs != 1 || len(p.script) != 0 {
				t.Errorf("output %q, %d lines of log, %d steps left", r.Output, p.logs, len(p.script))
			}
			if s := m.engine.Pool(); s.Parked != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// offError is what last_error tells of a mail call in a turn that is called off.
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
	r, _ := p.turn(wasm, Turn{Cancelled: off})
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
			r, m := p.turn(wasm, Turn{Cancelled: off, Limits: Limits{Grace: time.Millisecond}})
			wantExit(t, r.Exit, ExitCancelled, "limits.grace")
			if !errors.Is(r.Exit, errCalledOff) || m.engine.Pool().Parked != 0 {
				t.Errorf("%v, %+v", r.Exit, m.engine.Pool())
			}
		})
	}
}

// A turn that is called off and fails has failed; one that nobody calls off has
// no grace to end.
func TestCalledOffAndFailed(t *testing.T) {
	t.Parallel()
	off := make(chan struct{})
	m := load(t, newBuilder().agent("", i32c(1)))
	wantExit(t, play(t, m, Turn{Cancelled: off}).Exit, ExitFailed, "")
	close(off)
	wantExit(t, play(t, m, Turn{Cancelled: off}).Exit, ExitFailed, "")
	loop := load(t, newBuilder().agent("", forever(), ok))
	r := play(t, loop, Turn{Cancelled: make(chan struct{}), Limits: Limits{Fuel: fuel, Grace: 1}})
	wantExit(t, r.Exit, ExitFuel, keyFuel)
}

// The module's start is no one's turn: it is not called off.
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
	r, _ := newLatePort(t).turn(b.agent("", i.calls(10, 0, 8, calledOff), ok), Turn{Cancelled: off})
	wantExit(t, r.Exit, "", "")
}
