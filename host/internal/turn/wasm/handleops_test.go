package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// What is submitted comes when it comes, in any order, in pieces or not at all.
func TestSubmittedOps(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	wasm := b.agent("",
		i.submits(30, 1), i.submits(40, 2), i.submits(30, 3), i.submits(30, 4),
		i.waits(-1, 1, 1, 2, 3), // the second comes first
		i.reads(2, 3, 3), i.reads(2, 100, 2), i.reads(2, 100, 4), i.reads(2, 100, 0),
		i.waits(20, -int64(abi.CodeDeadline), 1, 3),
		i32c(0), i64c(0), i32c(600), callf(i.now), expect32(0), // the clock has moved
		i32c(600), op(0x29, 3, 0), expect64(newClock().now.UnixNano()+20_000_000),
		i.waits(-1, 0, 3, 1), // the third fails
		i.reads(3, 100, -int64(abi.CodeUpstream)), i.reads(3, 100, -int64(abi.CodeUpstream)),
		i.closes(1, 0), // while it is in flight
		i.reads(1, 100, -int64(abi.CodeNotFound)),
		ok) // the fourth is in flight when the turn ends
	p := newLatePort(t,
		comes(1, "abcde", false, nil),
		comes(1, "fghi", true, nil),
		comes(2, "", true, abi.Errorf(abi.CodeUpstream, abi.OpHTTPFetch, "status", "503")))
	r, m := p.turn(wasm, turn.Turn{})
	wantExit(t, r.Exit, "", "")
	if r.HostCalls != 4 || m.engine.Pool().Recycled != 1 {
		t.Errorf("%d host calls, %+v", r.HostCalls, m.engine.Pool())
	}
}

// The rest of a long answer is there at once, but what comes before it in the
// list may be there, too.
func TestWaitForBothKinds(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	wasm := b.agent("",
		i.calls(4, 0, 4, 1<<32|9), i.submits(30, 2),
		i.waits(-1, 0, 1, 2), i.waits(-1, 1, 2, 1),
		i.submits(30, 3), i.waits(-1, 0, 2), // now something has come
		i.waits(-1, 0, 2, 1), i.reads(1, 100, 5), i.reads(1, 100, 0), i.closes(1, 0), ok)
	p := newLatePort(t, comes(0, "x", true, nil))
	p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) { return []byte("an answer"), nil }
	r, _ := p.turn(wasm, turn.Turn{})
	wantExit(t, r.Exit, "", "")
	if !slices.Equal(p.waits, []int{1, 1, 1}) {
		t.Errorf("waited for %v answers", p.waits)
	}
}

// However a turn ends, nothing of its ops is left.
func TestNothingIsInFlightAfterTheTurn(t *testing.T) {
	t.Parallel()
	for kind, end := range map[turn.ExitKind][]byte{
		"": ok, turn.ExitFailed: i32c(1), turn.ExitTrap: unreachable, turn.ExitFuel: join(forever(), ok), turn.ExitStack: nil,
	} {
		b := newBuilder()
		i := importAll(b)
		if kind == turn.ExitStack {
			self := len(b.imports)
			end = callf(b.fn("", "", "i", "", callf(self), i32c(1), op(0x6a)))
		}
		p := newLatePort(t)
		r, _ := p.turn(b.agent("", i.submits(30, 1), i.submits(40, 2), end), turn.Turn{Limits: turn.Limits{Fuel: fuel}})
		if kind == "" && r.Exit != nil || kind != "" && (r.Exit == nil || r.Exit.Kind != kind) {
			t.Errorf("%v, want %s", r.Exit, kind)
		}
		if len(p.answers) != 2 {
			t.Errorf("%s: %d ops were submitted", kind, len(p.answers))
		}
	}
}

func TestSubmitIsRefused(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	wasm := b.agent("I", i.submits(999, -int64(abi.CodeUnsupported)), i.fails())
	p := newLatePort(t)
	p.refuse = abi.Errorf(abi.CodeUnsupported, 999, "op", "no op 999")
	r, _ := p.turn(wasm, turn.Turn{})
	const want = `{"code":"UNSUPPORTED","op":"op 999","reason":"op","message":"no op 999"}`
	if string(r.Output) != want {
		t.Errorf("last error %s, want %s", r.Output, want)
	}
}

// Every code reaches the guest, both ways, and its body with it.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	const message = `if a < b && b > c, "why"?`
	for code := abi.CodeInvalid; code <= abi.CodeInternal; code++ {
		err := &abi.Error{Code: code, Op: "llm.chat", Reason: "test", RetryAfterMS: 1500, Message: message}
		want := fmt.Sprintf(`{"code":%q,"op":"llm.chat","reason":"test","retry_after_ms":1500,"message":"if a < b && b > c, \"why\"?"}`, code)
		for way, body := range map[string]func(i importer) []byte{
			"call": func(i importer) []byte { return i.calls(40, 0, 8, -int64(code)) },
			"submit, wait, read": func(i importer) []byte {
				return join(i.submits(40, 1), i.waits(-1, 0, 1), i.reads(1, 8, -int64(code)))
			},
		} {
			b := newBuilder()
			i := importAll(b)
			p := newLatePort(t, comesFirst(err))
			p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) { return nil, err }
			r, _ := p.turn(b.agent("I", body(i), i.fails()), turn.Turn{})
			if string(r.Output) != want {
				t.Errorf("%s by %s: %v\n%s, want\n%s", code, way, r.Exit, r.Output, want)
			}
		}
	}
}

func comesFirst(err *abi.Error) func(p *latePort) { return comes(0, "", true, err) }

// What a port must not do does not reach the guest as an answer.
func TestPortsSlips(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  *abi.Error
		want string
	}{
		"no code":     {&abi.Error{Op: "mail", Message: "m"}, `{"code":"INTERNAL","op":"mail","message":"m"}`},
		"a long text": {&abi.Error{Code: abi.CodeDenied, Message: strings.Repeat("é", 5000)}, `{"code":"DENIED","op":"","message":"` + strings.Repeat("é", 2048) + `"}`},
		"cut within a character": {&abi.Error{Code: abi.CodeDenied, Message: "x" + strings.Repeat("é", 5000)},
			`{"code":"DENIED","op":"","message":"x` + strings.Repeat("é", 2047) + `"}`},
	}
	for name, tt := range tests {
		b := newBuilder()
		i := importAll(b)
		wasm := b.agent("I", i32c(10), i32c(0), i32c(0), i32c(0), i32c(0), callf(i.call), drop, i.fails())
		p := newLatePort(t)
		p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) { return nil, tt.err }
		r, _ := p.turn(wasm, turn.Turn{})
		if string(r.Output) != tt.want || !json.Valid(r.Output) {
			t.Errorf("%s: %.100s, want %.100s", name, r.Output, tt.want)
		}
	}
	internal := -int64(abi.CodeInternal)
	b := newBuilder()
	i := importAll(b)
	wasm := b.agent("", i.submits(30, 1), i.waits(0, internal, 1), i.reads(1, 4, internal), ok)
	wantExit(t, play(t, load(t, wasm), turn.Turn{Ops: sloppy{}}).Exit, "", "")
}

// sloppy returns numbers that make no sense.
type sloppy struct{}

func (sloppy) Call(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return nil, nil }

func (sloppy) Submit(context.Context, abi.Op, []byte) (turn.Answer, *abi.Error) { return sloppy{}, nil }

func (sloppy) Wait(context.Context, []turn.Answer, time.Duration) (int, *abi.Error) { return 7, nil }

func (sloppy) Read(_ context.Context, p []byte) (int, *abi.Error) { return len(p) + 1, nil }

func (sloppy) Close() {}

// A port that panics ends the turn as a fault of the host, wherever it does.
func TestPortPanics(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(i importer) []byte{
		"submit": func(i importer) []byte { return i.submits(1, 1) },
		"wait":   func(i importer) []byte { return join(i.submits(30, 1), i.waits(-1, 0, 1)) },
		"read":   func(i importer) []byte { return join(i.submits(30, 1), i.reads(1, 4, 0)) },
		"close":  func(i importer) []byte { return join(i.submits(30, 1), i.closes(1, 0)) },
		"end":    func(i importer) []byte { return i.submits(30, 1) },
	} {
		b := newBuilder()
		i := importAll(b)
		r := play(t, load(t, b.agent("", body(i), ok)), turn.Turn{Ops: clumsy{}})
		wantExit(t, r.Exit, turn.ExitHost, "")
		if r.Exit != nil && !strings.Contains(r.Exit.Message, "a bug") {
			t.Errorf("%s: %v", name, r.Exit)
		}
	}
}

// clumsy panics in everything but the submission of op 30.
type clumsy struct{}

func (clumsy) Call(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return nil, nil }

func (clumsy) Submit(_ context.Context, op abi.Op, _ []byte) (turn.Answer, *abi.Error) {
	if op != 30 {
		panic("a bug")
	}
	return clumsy{}, nil
}

func (clumsy) Wait(context.Context, []turn.Answer, time.Duration) (int, *abi.Error) { panic("a bug") }

func (clumsy) Read(context.Context, []byte) (int, *abi.Error) { panic("a bug") }

func (clumsy) Close() { panic("a bug") }
