package wasm

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn"
)

// far is a pointer outside every memory here, and huge a length that leaves it.
const (
	far  = -64
	huge = -1
)

// Each import is called with pointers and lengths that are not the guest's, and
// must answer with exactly one error. The guest traps at any other answer.
func TestBadPointers(t *testing.T) {
	t.Parallel()
	const invalidArg, notFound = -int64(abi.CodeInvalid), -int64(abi.CodeNotFound)
	tests := []struct {
		module, name, params, result string
		args                         []int64
		want                         int64
	}{
		{"skep_v1", "input_read", "iii", "i", []int64{0, far, 128}, invalidArg},
		{"skep_v1", "input_read", "iii", "i", []int64{0, 0, huge}, invalidArg},
		{"skep_v1", "input_read", "iii", "i", []int64{huge, 0, 8}, 0},
		{"skep_v1", "output_write", "ii", "i", []int64{far, 128}, invalidArg},
		{"skep_v1", "output_write", "ii", "i", []int64{1, huge}, invalidArg},
		{"skep_v1", "call", "iiiii", "I", []int64{10, far, 128, 0, 8}, invalidArg},
		{"skep_v1", "call", "iiiii", "I", []int64{10, 0, 8, far, 128}, invalidArg},
		{"skep_v1", "call", "iiiii", "I", []int64{10, 0, huge, 0, 8}, -int64(abi.CodeLimit)},
		{"skep_v1", "call", "iiiii", "I", []int64{0, far, huge, far, 128}, invalidArg},
		{"skep_v1", "submit", "iii", "I", []int64{10, far, 128}, invalidArg},
		{"skep_v1", "wait", "iii", "i", []int64{far, 64, 0}, invalidArg},
		{"skep_v1", "wait", "iii", "i", []int64{0, 0, 0}, invalidArg},
		{"skep_v1", "wait", "iii", "i", []int64{0, huge, 0}, invalidArg},
		{"skep_v1", "wait", "iii", "i", []int64{0, 1, 0}, notFound},
		{"skep_v1", "read", "iii", "I", []int64{1, 0, 8}, notFound},
		{"skep_v1", "close", "i", "i", []int64{0}, notFound},
		{wasiModule, "args_sizes_get", "ii", "i", []int64{far, 0}, errnoFault},
		{wasiModule, "args_sizes_get", "ii", "i", []int64{0, huge}, errnoFault},
		{wasiModule, "environ_sizes_get", "ii", "i", []int64{huge, 0}, errnoFault},
		{wasiModule, "clock_res_get", "ii", "i", []int64{0, huge}, errnoFault},
		{wasiModule, "clock_res_get", "ii", "i", []int64{2, 0}, errnoInval},
		{wasiModule, "clock_time_get", "iIi", "i", []int64{0, 0, huge}, errnoFault},
		{wasiModule, "clock_time_get", "iIi", "i", []int64{3, 0, 0}, errnoInval},
		{wasiModule, "fd_close", "i", "i", []int64{3}, errnoBadF},
		{wasiModule, "fd_fdstat_get", "ii", "i", []int64{1, huge}, errnoFault},
		{wasiModule, "fd_fdstat_get", "ii", "i", []int64{huge, 0}, errnoBadF},
		{wasiModule, "fd_fdstat_set_flags", "ii", "i", []int64{9, 0}, errnoBadF},
		{wasiModule, "fd_prestat_get", "ii", "i", []int64{3, huge}, errnoBadF},
		{wasiModule, "fd_prestat_dir_name", "iii", "i", []int64{3, huge, huge}, errnoBadF},
		{wasiModule, "fd_read", "iiii", "i", []int64{0, 0, 0, huge}, errnoFault},
		{wasiModule, "fd_read", "iiii", "i", []int64{0, 0, 1025, 0}, errnoInval},
		{wasiModule, "fd_read", "iiii", "i", []int64{1, 0, 0, 0}, errnoBadF},
		{wasiModule, "fd_seek", "iIii", "i", []int64{1, 0, 0, 0}, errnoSpipe},
		{wasiModule, "fd_write", "iiii", "i", []int64{1, far, 9, 0}, errnoFault},
		{wasiModule, "fd_write", "iiii", "i", []int64{1, 0, 1025, 0}, errnoInval},
		{wasiModule, "fd_write", "iiii", "i", []int64{1, 0, huge, 0}, errnoInval},
		{wasiModule, "fd_write", "iiii", "i", []int64{1, 0, 0, huge}, errnoFault},
		{wasiModule, "fd_write", "iiii", "i", []int64{3, 0, 0, 0}, errnoBadF},
		{wasiModule, "poll_oneoff", "iiii", "i", []int64{far, 0, 2, 0}, errnoFault},
		{wasiModule, "poll_oneoff", "iiii", "i", []int64{0, far, 2, 0}, errnoFault},
		{wasiModule, "poll_oneoff", "iiii", "i", []int64{0, 64, 1, huge}, errnoFault},
		{wasiModule, "poll_oneoff", "iiii", "i", []int64{0, 0, 0, 0}, errnoInval},
		{wasiModule, "poll_oneoff", "iiii", "i", []int64{0, 0, 17, 0}, errnoInval},
		{wasiModule, "random_get", "ii", "i", []int64{far, 128}, errnoFault},
		{wasiModule, "random_get", "ii", "i", []int64{0, huge}, errnoFault},
	}
	e := engine(t)
	for _, tt := range tests {
		b := newBuilder()
		f := b.importFunc(tt.module, tt.name, tt.params, tt.result)
		var body []byte
		for i, arg := range tt.args {
			if tt.params[i] == 'I' {
				body = append(body, i64c(arg)...)
			} else {
				body = append(body, i32c(arg)...)
			}
		}
		want := expect32
		if tt.result == "I" {
			want = expect64
		}
		wasm := b.agent("", body, callf(f), want(tt.want), ok)
		m, err := e.Load(t.Context(), Source{Wasm: wasm})
		if err != nil {
			t.Fatal(err)
		}
		if r := play(t, m, turn.Turn{Input: []byte("{}")}); r.Exit != nil {
			t.Errorf("%s%v does not answer %d: %v", tt.name, tt.args, tt.want, r.Exit)
		}
	}
}

func TestAbortKeepsTheMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ptr, size int64
		want      string
	}{
		{0, 5, "abort: INTERNAL: sorry"},
		{far, 128, "abort: INTERNAL: (its message is not in its memory)"},
	} {
		b := newBuilder()
		f := b.importFunc("skep_v1", "abort", "iii", "")
		b.mem(1)
		b.segment(0, "sorry")
		m := load(t, b.agent("", i32c(11), i32c(tt.ptr), i32c(tt.size), callf(f), ok))
		r := play(t, m, turn.Turn{})
		wantExit(t, r.Exit, turn.ExitAbort, "")
		if r.Exit.Error() != tt.want {
			t.Errorf("text %q, want %q", r.Exit, tt.want)
		}
	}
}

// A result that does not fit is not lost: its rest is read by handle.
func TestLongAnswerIsReadByHandle(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	call := b.importFunc("skep_v1", "call", "iiiii", "I")
	read := b.importFunc("skep_v1", "read", "iii", "I")
	closeIt := b.importFunc("skep_v1", "close", "i", "i")
	log := b.importFunc("skep_v1", "output_write", "ii", "i")
	b.mem(1)
	wasm := b.agent("",
		i32c(4), i32c(0), i32c(0), i32c(0), i32c(4), callf(call), expect64(1<<32|21), // 4 bytes now
		i32c(1), i32c(4), i32c(10), callf(read), expect64(10),
		i32c(1), i32c(14), i32c(100), callf(read), expect64(7),
		i32c(1), i32c(0), i32c(100), callf(read), expect64(0),
		i32c(1), callf(closeIt), expect32(0),
		i32c(1), callf(closeIt), expect32(-int64(abi.CodeNotFound)),
		i32c(0), i32c(21), callf(log), expect32(21), ok)
	const answer = `{"notes":["a longer"]}`
	ops := &fakeOps{answer: func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return []byte(answer[:21] + ""), nil }}
	r := play(t, load(t, wasm), turn.Turn{Ops: ops})
	wantExit(t, r.Exit, turn.ExitFailed, "") // the 21 bytes are cut JSON, on purpose
	if string(r.Output) != answer[:21] {
		t.Errorf("read %q, want %q", r.Output, answer[:21])
	}
}

func TestSubmitWaitRead(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	submit := b.importFunc("skep_v1", "submit", "iii", "I")
	wait := b.importFunc("skep_v1", "wait", "iii", "i")
	read := b.importFunc("skep_v1", "read", "iii", "I")
	b.mem(1)
	wasm := b.agent("",
		i32c(4), i32c(0), i32c(0), callf(submit), expect64(1),
		i32c(30), i32c(0), i32c(0), callf(submit), expect64(2), // refused; the handle says so
		i32c(0), i32c(1), store32(0), i32c(0), i32c(2), store32(4),
		i32c(0), i32c(2), i32c(-1), callf(wait), expect32(0),
		i32c(1), i32c(16), i32c(64), callf(read), expect64(2),
		i32c(2), i32c(16), i32c(64), callf(read), expect64(-int64(abi.CodeDenied)), ok)
	ops := &fakeOps{answer: func(_ context.Context, op abi.Op, _ []byte) ([]byte, *abi.Error) {
		if op == abi.OpHTTPFetch {
			return nil, abi.Errorf(abi.CodeDenied, op, "http", "not granted")
		}
		return []byte("{}"), nil
	}}
	r := play(t, load(t, wasm), turn.Turn{Ops: ops})
	wantExit(t, r.Exit, "", "")
	if r.HostCalls != 2 {
		t.Errorf("%d host calls, want 2", r.HostCalls)
	}
}

func TestHandlesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	submit := b.importFunc("skep_v1", "submit", "iii", "I")
	one := join(i32c(4), i32c(0), i32c(0), callf(submit))
	// 64 handles, then a refusal.
	wasm := b.agent("i", loop(join(one, drop, get(1), i32c(1), op(0x6a), set(1), get(1), i32c(64), op(0x49), brIf(0))),
		one, expect64(-int64(abi.CodeLimit)), ok)
	wantExit(t, play(t, load(t, wasm), turn.Turn{}).Exit, "", "")
}

// The error of the last refused call is read with op 0, which needs no ops and
// is not counted.
func TestLastError(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	call := b.importFunc("skep_v1", "call", "iiiii", "I")
	write := b.importFunc("skep_v1", "output_write", "ii", "i")
	wasm := b.agent("I",
		i32c(0), i32c(0), i32c(0), i32c(0), i32c(512), callf(call), expect64(0), // nothing yet
		i32c(10), i32c(0), i32c(0), i32c(0), i32c(512), callf(call), expect64(-int64(abi.CodeDenied)),
		i32c(0), i32c(0), i32c(0), i32c(0), i32c(512), callf(call), set(1),
		i32c(0), get(1), op(0xa7), callf(write), drop, i32c(1))
	ops := &fakeOps{answer: func(_ context.Context, op abi.Op, _ []byte) ([]byte, *abi.Error) {
		return nil, abi.Errorf(abi.CodeDenied, op, "comm_targets", "no %s", "way")
	}}
	r := play(t, load(t, wasm), turn.Turn{Ops: ops})
	const want = `{"code":"DENIED","op":"mail","reason":"comm_targets","message":"no way"}`
	if string(r.Output) != want || r.HostCalls != 1 {
		t.Errorf("output %q after %d calls, want %q after 1", r.Output, r.HostCalls, want)
	}
	if r.Exit.Error() != "failed: DENIED: no way" {
		t.Errorf("exit %q", r.Exit)
	}
}

// writer is an agent that writes a text to a descriptor some times.
func writer(fd, times int64, text string) []byte {
	b := newBuilder()
	write := b.importFunc(wasiModule, "fd_write", "iiii", "i")
	b.mem(3)
	b.segment(16, text)
	return b.agent("i", i32c(0), i32c(16), store32(0), i32c(0), i32c(int64(len(text))), store32(4),
		loop(join(i32c(fd), i32c(0), i32c(1), i32c(8), callf(write), expect32(0),
			get(1), i32c(1), op(0x6a), set(1), get(1), i32c(times), op(0x49), brIf(0))), ok)
}

func TestOutputBecomesLogLines(t *testing.T) {
	t.Parallel()
	ops := &fakeOps{}
	r := play(t, load(t, writer(2, 2, "one\ntwo\nthr")), turn.Turn{Ops: ops})
	wantExit(t, r.Exit, "", "")
	var got []string
	for _, l := range ops.logs {
		got = append(got, l.Level+" "+l.Message)
	}
	if want := "warn one|warn two|warn throne|warn two|warn thr"; strings.Join(got, "|") != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	if r.HostCalls != 0 {
		t.Errorf("lines counted as %d host calls", r.HostCalls)
	}

	ops = &fakeOps{}
	play(t, load(t, writer(1, 1500, "a line\n")), turn.Turn{Ops: ops})
	if n := len(ops.logs); n != maxLogLines+1 || !strings.HasPrefix(ops.logs[n-1].Message, "3000 more bytes") {
		t.Errorf("%d lines, the last %+v", n, ops.logs[n-1])
	}

	ops = &fakeOps{}
	play(t, load(t, writer(1, 1, strings.Repeat("x", 10_000))), turn.Turn{Ops: ops})
	if len(ops.logs) != 10 || len(ops.logs[0].Message) != maxLogLine {
		t.Errorf("a line of 10000 bytes became %d lines", len(ops.logs))
	}

	ops = &fakeOps{}
	play(t, load(t, writer(1, 1, strings.Repeat("y", 100_000))), turn.Turn{Ops: ops})
	total := 0
	for _, l := range ops.logs {
		total += len(l.Message)
	}
	if total != maxWrite {
		t.Errorf("one write took %d bytes, want %d", total, maxWrite)
	}
}

func TestSleepMovesTheClockExactly(t *testing.T) {
	t.Parallel()
	clock := newClock()
	start := clock.now
	b := newBuilder()
	poll := b.importFunc(wasiModule, "poll_oneoff", "iiii", "i")
	now := b.importFunc(wasiModule, "clock_time_get", "iIi", "i")
	wasm := b.agent("",
		// first: 50 ms of the monotonic clock, mark 7; second: a time in the past
		i32c(0), i64c(7), store64(0), i32c(16), i32c(1), store32(0), i32c(24), i64c(50_000_000), store64(0),
		i32c(0), i32c(256), i32c(1), i32c(512), callf(poll), expect32(0),
		i32c(512), load32(0), expect32(1), i32c(256), load32(0), expect32(7), i32c(264), load32(0), expect32(0),
		i32c(0), i64c(0), i32c(600), callf(now), expect32(0),
		i32c(600), op(0x29, 3, 0), expect64(start.Add(50*time.Millisecond).UnixNano()),
		i32c(40), i32c(1), store32(0), // the same, but absolute, in 1970: due at once
		i32c(0), i32c(256), i32c(1), i32c(512), callf(poll), expect32(0),
		i32c(512), load32(0), expect32(1),
		i32c(8), i32c(1), store32(0), // a descriptor: answered with an error
		i32c(0), i32c(256), i32c(1), i32c(512), callf(poll), expect32(0),
		i32c(264), load32(0), i32c(0xffff), op(0x71), expect32(errnoNotSup), ok)
	r := play(t, load(t, wasm), turn.Turn{Clock: clock})
	wantExit(t, r.Exit, "", "")
	if len(clock.sleeps) != 1 || clock.sleeps[0] != 50*time.Millisecond {
		t.Errorf("sleeps %v, want one of 50ms", clock.sleeps)
	}
}

func TestRandomIsTheSeeds(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	random := b.importFunc(wasiModule, "random_get", "ii", "i")
	write := b.importFunc("skep_v1", "output_write", "ii", "i")
	b.mem(4)
	wasm := b.agent("", i32c(0), i32c(200_000), callf(random), expect32(0), i32c(0), i32c(200_000), callf(write), drop, i32c(1))
	m := load(t, wasm)
	a := play(t, m, turn.Turn{Seed: [32]byte{1}})
	again := play(t, m, turn.Turn{Seed: [32]byte{1}})
	other := play(t, m, turn.Turn{Seed: [32]byte{2}})
	if len(a.Output) != 200_000 || !bytes.Equal(a.Output, again.Output) || bytes.Equal(a.Output, other.Output) {
		t.Error("randomness is not a function of the seed")
	}
	if a.Fuel != again.Fuel || a.Fuel < 8*199_000/16 {
		t.Errorf("fuel %d and %d", a.Fuel, again.Fuel)
	}
}
