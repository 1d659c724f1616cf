package capability

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/abi"
	"skep/host/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stillClock is a turn's clock.
type stillClock struct{ now time.Time }

func (c *stillClock) Now() time.Time { return c.now }

func (c *stillClock) Advance(to time.Time) {
	if to.After(c.now) {
		c.now = to
	}
}

func (c *stillClock) Sleep(context.Context, time.Duration) error { return nil }

// later is what the host's clock shows in these tests.
var later = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// withOps makes ops without a turn, by a table of the test's own.
func withOps(t *testing.T, all table) (*ops, *stillClock) {
	t.Helper()
	clock := &stillClock{later.Add(-time.Hour)}
	now := func() time.Time { return later }
	w := &fakeWriter{}
	return &ops{table: all, clock: clock, now: now, j: newJournal(t.Context(), w, w, clock, now)}, clock
}

func answers(list ...turn.Answer) []turn.Answer { return list }

// effects makes ops whose llm.chat is a test's work.
func effects(t *testing.T, do effectFunc) (*ops, *stillClock) {
	return withOps(t, table{abi.OpLLMChat: {
		effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) { return do, nil }, streams: true,
	}})
}

func submit(t *testing.T, o *ops) turn.Answer {
	t.Helper()
	a, fault := o.Submit(t.Context(), abi.OpLLMChat, nil)
	if fault != nil {
		t.Fatal(fault)
	}
	return a
}

// wantRead reads once.
func wantRead(t *testing.T, a turn.Answer, want string, code abi.Code) {
	t.Helper()
	buf := make([]byte, 64)
	n, fault := a.Read(t.Context(), buf)
	if string(buf[:n]) != want || (fault == nil) != (code == abi.CodeOK) || fault != nil && fault.Code != code {
		t.Errorf("read %q, %v; want %q, %v", buf[:n], fault, want, code)
	}
}

func failing() *abi.Error {
	return abi.Errorf(abi.CodeUpstream, abi.OpLLMChat, "status", "the model said 500")
}

// A call waits for the whole answer, and moves the clock to its time.
func TestCallOfAnEffect(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", maxUnread)
	for name, c := range map[string]struct {
		do   effectFunc
		size int
		code abi.Code
	}{
		"body":     {func(_ context.Context, out *asyncOp) *abi.Error { return out.write([]byte("body")) }, 4, abi.CodeOK},
		"nothing":  {func(context.Context, *asyncOp) *abi.Error { return nil }, 0, abi.CodeOK},
		"failure":  {func(context.Context, *asyncOp) *abi.Error { return failing() }, 0, abi.CodeUpstream},
		"cut":      {func(_ context.Context, out *asyncOp) *abi.Error { _ = out.write([]byte("half")); return failing() }, 0, abi.CodeUpstream},
		"pieces":   {pieces(piece, 4), 4 * maxUnread, abi.CodeOK},
		"too much": {pieces(piece, 1000), 0, abi.CodeLimit},
	} {
		o, clock := effects(t, c.do)
		body, fault := o.Call(t.Context(), abi.OpLLMChat, nil)
		if (fault == nil) != (c.code == abi.CodeOK) || fault != nil && fault.Code != c.code {
			t.Errorf("%s: %v", name, fault)
		}
		if fault == nil && len(body) != c.size {
			t.Errorf("%s: %d bytes", name, len(body))
		}
		if clock.now != later {
			t.Errorf("%s: the clock shows %v", name, clock.now)
		}
	}
}

// pieces writes an answer bit by bit.
func pieces(piece string, n int) effectFunc {
	return func(_ context.Context, out *asyncOp) *abi.Error {
		for range n {
			if fault := out.write([]byte(piece)); fault != nil {
				return fault
			}
		}
		return nil
	}
}

// An effect that is submitted runs beside the guest, which learns of it by wait
// and read.
func TestSubmitOfAnEffect(t *testing.T) {
	t.Parallel()
	say := make(chan string)
	o, clock := effects(t, func(_ context.Context, out *asyncOp) *abi.Error {
		for text := range say {
			if fault := out.write([]byte(text)); fault != nil {
				return fault
			}
		}
		return failing()
	})
	blocked, _ := effects(t, stuck)
	blocked.j = o.j
	first, second := submit(t, blocked), submit(t, o)
	defer first.Close()
	defer second.Close()
	n, fault := o.Wait(t.Context(), answers(first, second), 0)
	if n != 0 || fault == nil || fault.Code != abi.CodeDeadline || fault.Op != "wait" || clock.now != later {
		t.Errorf("%d, %v at %v", n, fault, clock.now)
	}
	go func() { say <- "one" }()
	if n, fault := o.Wait(t.Context(), answers(first, second), -1); n != 1 || fault != nil {
		t.Errorf("%d, %v", n, fault)
	}
	wantRead(t, second, "one", abi.CodeOK)
	go func() { say <- "two" }()
	wantRead(t, second, "two", abi.CodeOK)
	close(say)
	if n, fault := o.Wait(t.Context(), answers(second, first), time.Hour); n != 0 || fault != nil {
		t.Errorf("%d, %v", n, fault)
	}
	wantRead(t, second, "", abi.CodeUpstream)
	wantRead(t, second, "", abi.CodeUpstream)
}

// stuck waits until it is called off.
func stuck(ctx context.Context, _ *asyncOp) *abi.Error {
	<-ctx.Done()
	return abi.Errorf(abi.CodeUnavailable, abi.OpLLMChat, "", "%v", ctx.Err())
}

// What is prepared on the turn's goroutine can refuse, and knows whether the
// guest will read a stream.
func TestEffectIsPrepared(t *testing.T) {
	t.Parallel()
	var streams []bool
	o, _ := withOps(t, table{abi.OpHTTPFetch: {effect: func(_ *ops, _ context.Context, req []byte, stream bool) (effectFunc, *abi.Error) {
		if streams = append(streams, stream); string(req) == "no" {
			return nil, abi.Errorf(abi.CodeDenied, abi.OpHTTPFetch, "http", "not granted")
		}
		return func(context.Context, *asyncOp) *abi.Error { return nil }, nil
	}}})
	_, called := o.Call(t.Context(), abi.OpHTTPFetch, []byte("no"))
	answer, submitted := o.Submit(t.Context(), abi.OpHTTPFetch, []byte("no"))
	if called == nil || submitted == nil || answer != nil || called.Code != abi.CodeDenied || o.j.group != nil {
		t.Errorf("%v, %v, answer %v", called, submitted, answer)
	}
	if _, fault := o.Call(t.Context(), abi.OpHTTPFetch, nil); fault != nil {
		t.Error(fault)
	}
	if len(streams) != 3 || streams[0] || !streams[1] || streams[2] {
		t.Errorf("streams %v", streams)
	}
}

// However the end comes, nothing goes on behind it.
func TestEffectIsCalledOff(t *testing.T) {
	t.Parallel()
	var left atomic.Bool
	do := func(ctx context.Context, out *asyncOp) *abi.Error {
		defer left.Store(true)
		return stuck(ctx, out)
	}
	t.Run("close", func(t *testing.T) {
		begun := make(chan struct{})
		o, _ := effects(t, func(ctx context.Context, out *asyncOp) *abi.Error {
			close(begun)
			return do(ctx, out)
		})
		a := submit(t, o)
		<-begun
		if a.Close(); !left.Swap(false) {
			t.Error("Close did not wait")
		}
	})
	t.Run("call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o, _ := effects(t, func(ctx context.Context, out *asyncOp) *abi.Error {
			cancel()
			return do(ctx, out)
		})
		if _, fault := o.Call(ctx, abi.OpLLMChat, nil); fault == nil || fault.Code != abi.CodeCancelled || !left.Swap(false) {
			t.Errorf("%v", fault)
		}
	})
	t.Run("wait and read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o, _ := effects(t, func(ctx context.Context, out *asyncOp) *abi.Error {
			_ = out.write([]byte("half"))
			cancel()
			return do(ctx, out)
		})
		a, fault := o.Submit(ctx, abi.OpLLMChat, nil)
		if fault != nil {
			t.Fatal(fault)
		}
		<-ctx.Done()
		if _, fault := o.Wait(ctx, answers(a), -1); fault == nil || fault.Code != abi.CodeCancelled || fault.Op != "wait" {
			t.Errorf("wait: %v", fault)
		}
		wantRead(t, a, "half", abi.CodeOK)
		wantRead(t, a, "", abi.CodeCancelled)
		a.Close()
	})
}

// As many as may run at once do; the others wait, and can be called off there.
func TestEffectsAreBounded(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	var full sync.WaitGroup
	full.Add(maxAsyncOps)
	o, _ := effects(t, func(ctx context.Context, out *asyncOp) *abi.Error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		full.Done()
		defer running.Add(-1)
		return stuck(ctx, out)
	})
	var list []turn.Answer
	for range 3 * maxAsyncOps {
		list = append(list, submit(t, o))
	}
	full.Wait()
	full.Add(2 * maxAsyncOps) // as a slot is free, the next ones may begin
	for _, a := range list {
		a.Close()
	}
	if most.Load() > maxAsyncOps || running.Load() != 0 {
		t.Errorf("%d ran at once, %d still do", most.Load(), running.Load())
	}
}

// whole makes ops whose effect writes this many bytes at once, and returns a channel with
// the result of each write.
func whole(t *testing.T, bytes int) (*ops, chan *abi.Error) {
	landed := make(chan *abi.Error, 100)
	o, _ := withOps(t, table{abi.OpLLMChat: {effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
		return func(_ context.Context, out *asyncOp) *abi.Error {
			fault := out.write(make([]byte, bytes))
			landed <- fault
			return fault
		}, nil
	}}})
	return o, landed
}

// The unread answers of a turn are bounded together.
func TestUnreadAnswersAreBounded(t *testing.T) {
	o, landed := whole(t, 8<<20)
	fits := int(o.j.limit / (8 << 20))
	var open []turn.Answer
	for i := range 5 {
		open = append(open, submit(t, o))
		if fault := <-landed; (fault == nil) != (i < fits) || fault != nil && (fault.Code != abi.CodeLimit || fault.Reason != "answers") {
			t.Errorf("answer %d: %v", i+1, fault)
		}
	}
	for _, a := range open {
		a.Close()
	}
	if held := o.j.asyncGroup().unread.Load(); held != 0 {
		t.Errorf("%d bytes are held of nothing", held)
	}
}

// What is closed is forgotten, read or not: a turn may make a thousand calls.
func TestClosedAnswersAreForgotten(t *testing.T) {
	o, landed := whole(t, 8<<20)
	for range 20 {
		a := submit(t, o)
		if fault := <-landed; fault != nil {
			t.Fatal(fault)
		}
		a.Close()
		if f := a.(*reply).async; len(f.unread) != 0 || len(o.j.inFlight) != 0 {
			t.Fatalf("%d bytes of %d answers are kept", len(f.unread), len(o.j.inFlight))
		}
	}
}

// What is read counts no more.
func TestReadAnswersMakeRoom(t *testing.T) {
	o, landed := whole(t, 6<<20)
	for range 2 {
		a := submit(t, o)
		if fault := <-landed; fault != nil {
			t.Fatal(fault)
		}
		for p := make([]byte, 1<<20); ; {
			n, fault := a.Read(t.Context(), p)
			if fault != nil {
				t.Fatal(fault)
			}
			if n == 0 {
				break
			}
		}
		if held := o.j.asyncGroup().unread.Load(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
		a.Close()
	}
}

// Unread answers count among those of all turns: while they are unread, and not
// afterwards. A refusal names the key that raises the limit.
func TestUnreadAnswersCountAmongAllTurns(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	o, _ := effects(t, func(ctx context.Context, out *asyncOp) *abi.Error {
		fault := out.write([]byte("piece"))
		select {
		case <-more:
		case <-ctx.Done():
		}
		return fault
	})
	w := o.j.writer.(*fakeWriter)
	held := func(want int64) {
		t.Helper()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held != want {
			t.Errorf("%d bytes are held, want %d", w.held, want)
		}
	}
	a, closed := submit(t, o), submit(t, o)
	defer a.Close()
	for i, one := range []turn.Answer{a, closed} {
		if n, fault := o.Wait(t.Context(), answers(one), -1); n != 0 || fault != nil {
			t.Fatal(i, n, fault)
		}
	}
	held(10)
	wantRead(t, a, "piece", abi.CodeOK)
	held(5)
	closed.Close()
	held(0)
	close(more)
	w.full = true
	if _, fault := o.Call(t.Context(), abi.OpLLMChat, nil); fault == nil || fault.Reason != "turn_buffers" || !strings.Contains(fault.Message, "[limits] turn_buffers") {
		t.Errorf("a full host: %v", fault)
	}
	held(0)
	if n := o.j.asyncGroup().unread.Load(); n != 0 {
		t.Errorf("%d bytes that the host refused count in the turn", n)
	}
}

// A request that fails holds nothing of its answer from then on, looked at or not.
func TestFailedAnswersHoldNothing(t *testing.T) {
	t.Parallel()
	o, _ := withOps(t, table{abi.OpLLMChat: {effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
		return func(_ context.Context, out *asyncOp) *abi.Error {
			if fault := out.write([]byte("half")); fault != nil {
				return fault
			}
			return abi.Errorf(abi.CodeUnavailable, abi.OpLLMChat, "cut", "the rest did not come")
		}, nil
	}}})
	a := submit(t, o)
	defer a.Close()
	<-a.(*reply).async.done
	if n := o.j.asyncGroup().unread.Load(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
}
