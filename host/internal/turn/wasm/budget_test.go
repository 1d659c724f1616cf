package wasm

import (
	"context"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
	"skep/host/internal/turn/wasm/binary"
)

// Beyond its budget an op is refused and does not run; the turn goes on.
func TestBudgets(t *testing.T) {
	t.Parallel()
	const limit = -int64(abi.CodeLimit)
	tests := map[string]struct {
		limits turn.Limits
		body   func(i importer) []byte
		ran    int64
		text   string // of the last error
	}{
		"calls": {turn.Limits{HostCalls: 2}, func(i importer) []byte {
			return join(i.calls(10, 0, 64, 10), i.submits(30, 1), i.calls(10, 0, 64, limit), i.submits(30, limit), i.calls(10, 0, 64, limit))
		}, 2, `{"code":"LIMIT","op":"mail","reason":"host_calls","message":"the turn has made its 2 host calls; limits.host_calls allows more"}`},
		"bytes of a request": {turn.Limits{HostBytes: 100}, func(i importer) []byte {
			return join(i.calls(10, 80, 64, 10), i.calls(10, 11, 64, limit))
		}, 1, `{"code":"LIMIT","op":"mail","reason":"host_bytes","message":"the request has 11 bytes, and the turn may move 10 of its 100 any more; limits.host_bytes allows more"}`},
		"bytes of an answer": {turn.Limits{HostBytes: 15}, func(i importer) []byte {
			return join(i.calls(10, 0, 64, 10), i.calls(10, 0, 64, limit), i.calls(10, 5, 0, limit))
		}, 3, `{"code":"LIMIT","op":"mail","reason":"host_bytes","message":"the op has run, but its answer has 10 bytes, and the turn may move 0 of its 15 any more; limits.host_bytes allows more"}`},
		"bytes of a stream": {turn.Limits{HostBytes: 7}, func(i importer) []byte {
			return join(i.submits(30, 1), i.reads(1, 64, 5), i.reads(1, 64, limit))
		}, 1, `{"code":"LIMIT","op":"http.fetch","reason":"host_bytes","message":"there may be more to read, and the turn may move 0 of its 7 any more; limits.host_bytes allows more"}`},
		"a huge request": {turn.Limits{}, func(i importer) []byte { return i.calls(10, 5<<20, 64, limit) },
			0, `{"code":"LIMIT","op":"mail","reason":"request","message":"a request of 5242880 bytes, at most 4194304"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder()
			i := importAll(b)
			p := newLatePort(t, comes(0, "a stream", false, nil))
			ran := int64(0)
			p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) {
				ran++
				return []byte(strings.Repeat("x", 10)), nil
			}
			r, _ := p.turn(b.agent("I", tt.body(i), i.fails()), turn.Turn{Limits: tt.limits})
			if string(r.Output) != tt.text {
				t.Errorf("%v: last error\n%s, want\n%s", r.Exit, r.Output, tt.text)
			}
			if got := ran + int64(len(p.answers)); got != tt.ran || r.HostCalls != tt.ran {
				t.Errorf("%d ops ran, %d are counted, want %d", got, r.HostCalls, tt.ran)
			}
		})
	}
}

// The rest of a long answer was paid for with the call.
func TestRestIsPaidFor(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	i := importAll(b)
	p := newLatePort(t)
	p.call = func(context.Context, abi.Op) ([]byte, *abi.Error) { return []byte("0123456789"), nil }
	r, _ := p.turn(b.agent("", i.calls(10, 0, 4, 1<<32|10), i.reads(1, 0, 0), i.reads(1, 64, 6), ok),
		turn.Turn{Limits: turn.Limits{HostBytes: 10}})
	wantExit(t, r.Exit, "", "")
}

// An answer costs the same, whether it is called or submitted and read.
func TestFuelOfAnAnswer(t *testing.T) {
	t.Parallel()
	cost := func(size int) uint64 {
		b := newBuilder()
		i := importAll(b)
		p := newLatePort(t, comes(0, strings.Repeat("x", size), true, nil))
		r, _ := p.turn(b.agent("", i.submits(30, 1), i32c(1), i32c(1024), i32c(32000), callf(i.read), drop, ok), turn.Turn{})
		wantExit(t, r.Exit, "", "")
		return r.Fuel
	}
	if small, large := cost(16), cost(16016); large-small != 2*16000/bytesPerUnit {
		t.Errorf("16000 bytes cost %d units", large-small)
	}
}

// Random bytes of one call cost eight times the price of moved ones, but for the first 256.
func TestFuelOfRandomBytes(t *testing.T) {
	t.Parallel()
	cost := func(size int64) uint64 {
		b := newBuilder()
		random := b.importFunc(wasiModule, "random_get", "ii", "i")
		b.mem(1)
		r := play(t, load(t, b.agent("", i32c(0), i32c(size), callf(random), expect32(0), ok)), turn.Turn{})
		wantExit(t, r.Exit, "", "")
		return r.Fuel
	}
	least, cheap, dear := cost(16), cost(256), cost(16256)
	if moved, made := cheap-least, dear-cheap; moved != 240/bytesPerUnit || made != 8*16000/bytesPerUnit {
		t.Errorf("240 bytes cost %d units, 16000 further ones %d", moved, made)
	}
}

// The default limit of the stack is the budget of a module metered without one.
func TestDefaultStack(t *testing.T) {
	t.Parallel()
	if got := turn.DefaultLimits().Stack; got != binary.DefaultStack {
		t.Errorf("%d bytes, want %d", got, binary.DefaultStack)
	}
}
