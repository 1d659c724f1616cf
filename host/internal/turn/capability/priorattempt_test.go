package capability

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// world answers effects, the same for the same key, and counts what reaches it.
type world struct {
	mu   sync.Mutex
	sent map[string]int
}

func (w *world) reach(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = map[string]int{}
	}
	w.sent[key]++
}

func (w *world) has(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[key] > 0
}

func (w *world) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.sent {
		n += k
	}
	return n
}

// worldly is a table of test-only handlers, one of each kind.
func worldly(w *world) table {
	whole := func(_ *ops, _ context.Context, req []byte, _ bool) (effectFunc, *abi.Error) {
		if string(req) == "denied" {
			return nil, abi.Errorf(abi.CodeDenied, abi.OpHTTPFetch, "http", "not granted")
		}
		return func(_ context.Context, out *asyncOp) *abi.Error {
			w.reach(out.key)
			return out.write([]byte("answer to " + string(req) + " under " + out.key))
		}, nil
	}
	return table{
		abi.OpLog:       {direct: func(*ops, context.Context, []byte) ([]byte, *abi.Error) { return []byte("{}"), nil }, restaged: true},
		abi.OpKVPut:     {direct: func(_ *ops, _ context.Context, req []byte) ([]byte, *abi.Error) { return req, nil }, restaged: true},
		abi.OpClockNow:  {direct: func(o *ops, _ context.Context, _ []byte) ([]byte, *abi.Error) { return o.clockNow() }},
		abi.OpHTTPFetch: {effect: whole},
		abi.OpLLMChat: {effect: func(_ *ops, _ context.Context, req []byte, _ bool) (effectFunc, *abi.Error) {
			return func(_ context.Context, out *asyncOp) *abi.Error {
				w.reach(out.key)
				return out.write([]byte("chat " + string(req)))
			}, nil
		}, streams: true},
		abi.OpKVCas: {immediate: func(_ *ops, _ context.Context, req []byte) (casChange, *abi.Error) {
			old, fresh, _ := strings.Cut(string(req), ">")
			return casChange{swarm.KVCas{Name: "v", Expect: []byte(old), Value: []byte(fresh)}, []byte("yes"), []byte("no")}, nil
		}},
		abi.OpAction: {nested: func(o *ops, ctx context.Context, req []byte) ([]byte, *abi.Error) {
			body, fault := o.Call(ctx, abi.OpHTTPFetch, req)
			if fault != nil {
				return nil, fault
			}
			_, fault = o.Call(ctx, abi.OpKVPut, []byte("inside"))
			return append([]byte("action: "), body...), fault
		}},
	}
}

// transcript is what a guest in Go has seen.
type transcript struct {
	t     *testing.T
	o     *ops
	clock turn.Clock
	lines []string
}

func (s *transcript) note(what string, body []byte, fault *abi.Error) {
	line := fmt.Sprintf("%s: %s at %s", what, body, s.clock.Now().Format(time.TimeOnly))
	if fault != nil {
		line = fmt.Sprintf("%s: %s, %s", what, fault.Code, fault.Reason)
	}
	s.lines = append(s.lines, line)
}

func (s *transcript) call(op abi.Op, req string) {
	body, fault := s.o.Call(s.t.Context(), op, []byte(req))
	s.note(op.String(), body, fault)
}

func (s *transcript) submit(op abi.Op, req string) turn.Answer {
	a, fault := s.o.Submit(s.t.Context(), op, []byte(req))
	s.note("submit "+op.String(), nil, fault)
	return a
}

func (s *transcript) read(a turn.Answer, size int) {
	buf := make([]byte, size)
	n, fault := a.Read(s.t.Context(), buf)
	s.note("read", buf[:n], fault)
}

func (s *transcript) wait(timeout time.Duration, list ...turn.Answer) {
	n, fault := s.o.Wait(s.t.Context(), list, timeout)
	s.note("wait", fmt.Append(nil, n), fault)
}

// day is a turn that does one of everything.
func (s *transcript) day() {
	s.call(abi.OpKVPut, "first")
	s.call(abi.OpHTTPFetch, "one")
	s.call(abi.OpHTTPFetch, "denied")
	_ = turnClock{s.clock, s.o.j}.Sleep(s.t.Context(), time.Minute)
	s.call(abi.OpClockNow, "{}")
	two, chat, put := s.submit(abi.OpHTTPFetch, "two"), s.submit(abi.OpLLMChat, "hi"), s.submit(abi.OpKVPut, "put")
	s.wait(-1, two)
	s.wait(-1, chat)
	s.wait(0, put, two)
	s.read(two, 8)
	for range 3 {
		s.read(chat, 64)
	}
	s.read(put, 2)
	s.read(put, 2)
	two.Close()
	s.call(abi.OpKVCas, ">a")
	s.call(abi.OpKVCas, ">b")
	s.call(abi.OpAction, "three")
	s.call(abi.OpLog, "{}")
	s.call(abi.OpHTTPFetch, "four")
	chat.Close()
	s.call(abi.OpKVPut, "last")
}

// sleeper is a clock that sleeps at once.
type sleeper struct {
	stillClock
	slept time.Duration
}

func (c *sleeper) Sleep(_ context.Context, d time.Duration) error {
	c.slept += d
	c.Advance(c.now.Add(d))
	return nil
}

// live plays a turn on a past, nil for none.
func live(t *testing.T, w *world, b *fakeWriter, p *swarm.PriorAttempt, do func(*transcript)) (*transcript, *swarm.Record) {
	t.Helper()
	clock := &sleeper{stillClock: stillClock{later.Add(-time.Hour)}}
	now := func() time.Time { return later }
	j := newJournal(t.Context(), b, b, clock, now)
	j.header = &swarm.TurnHeader{Agent: "a", Attempt: 1}
	if p != nil {
		j.loadPrior(p)
		j.addAnswers(p.Answers)
	}
	s := &transcript{t: t, clock: clock, o: &ops{table: worldly(w), clock: clock, now: now, j: j}}
	do(s)
	return s, j.record(&swarm.TurnEnd{Exit: exitOK})
}

func withoutRuns(list []swarm.Entry) (out []swarm.Entry) {
	for _, e := range list {
		if e.Kind != swarm.EntryRun {
			e.N = 0
			out = append(out, e)
		}
	}
	return out
}

// Durable writes by class: none for pure and staged ops, one for a cas, two for
// an effect, one before the request leaves and one before its answer is seen.
func TestDurableWritesByClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*transcript)
		want int
	}{
		"pure and staged": {func(s *transcript) { s.call(abi.OpClockNow, "{}"); s.call(abi.OpKVPut, "x"); s.call(abi.OpLog, "{}") }, 0},
		"refused effect":  {func(s *transcript) { s.call(abi.OpHTTPFetch, "denied") }, 0},
		"immediate":       {func(s *transcript) { s.call(abi.OpKVPut, "x"); s.call(abi.OpKVCas, ">a") }, 1},
		"effect":          {func(s *transcript) { s.call(abi.OpKVPut, "x"); s.call(abi.OpHTTPFetch, "one") }, 2},
		"two effects":     {func(s *transcript) { s.call(abi.OpHTTPFetch, "one"); s.call(abi.OpHTTPFetch, "two") }, 4},
		"stream of three reads": {func(s *transcript) {
			a := s.submit(abi.OpLLMChat, "hi")
			s.read(a, 3)
			s.read(a, 3)
			s.read(a, 3)
			s.read(a, 3)
			a.Close()
		}, 2},
	} {
		var b fakeWriter
		w := &world{}
		_, rec := live(t, w, &b, nil, c.do)
		if b.count() != c.want {
			t.Errorf("%s: %d durable writes, want %d", name, b.count(), c.want)
		}
		for i, e := range append(b.durable(), rec.Entries...) {
			if e.N != int64(i+1) {
				t.Errorf("%s: entry %d has the number %d", name, i+1, e.N)
			}
		}
		if (rec.Header == nil) != (c.want > 0) {
			t.Errorf("%s: header %v left for the commit", name, rec.Header)
		}
	}
}

// The request leaves when its intent is durable, and never when it is not.
func TestIntentGoesFirst(t *testing.T) {
	t.Parallel()
	var b fakeWriter
	clock := &stillClock{later}
	seen := 0
	o, _ := withOps(t, table{abi.OpHTTPFetch: {effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
		return func(context.Context, *asyncOp) *abi.Error { seen = len(b.durable()); return nil }, nil
	}}})
	o.j = newJournal(t.Context(), &b, &b, clock, o.now)
	if _, fault := o.Call(t.Context(), abi.OpHTTPFetch, nil); fault != nil || seen != 1 {
		t.Errorf("%v; %d entries were durable", fault, seen)
	}
	seen, b.err = -1, swarm.ErrFenced
	if _, fault := o.Call(t.Context(), abi.OpHTTPFetch, nil); fault == nil || fault.Code != abi.CodeCancelled || seen != -1 {
		t.Errorf("%v; the request left: %v", fault, seen != -1)
	}
}

// Death at every durable write, before and behind it: the turn that is run again
// sees what it saw, sends nothing twice whose answer is known, repeats what it
// staged, and leaves the same journal.
func TestRerunAfterEveryWrite(t *testing.T) {
	t.Parallel()
	var whole fakeWriter
	first, rec := live(t, &world{}, &whole, nil, (*transcript).day)
	all := append(whole.durable(), rec.Entries...)
	for k := range len(whole.writes) + 1 {
		var known []swarm.Entry
		for _, w := range whole.writes[:k] {
			known = append(known, w.Entries...)
		}
		var p *swarm.PriorAttempt
		b, w := &fakeWriter{}, &world{}
		if k > 0 {
			p = &swarm.PriorAttempt{Record: swarm.Record{Header: &swarm.TurnHeader{Attempt: 1}, Entries: known}}
		}
		if slices.ContainsFunc(known, func(e swarm.Entry) bool { return e.Op == abi.OpKVCas }) {
			b.value = "a"
		}
		again, rec := live(t, w, b, p, (*transcript).day)
		if diff := cmp.Diff(lossy(first.lines, again.lines), again.lines); diff != "" {
			t.Errorf("after %d writes the turn saw something else (-first +again):\n%s", k, diff)
		}
		answered := 0
		for _, e := range known {
			if e.Kind == swarm.EntryAnswer && (e.Op == abi.OpHTTPFetch || e.Op == abi.OpLLMChat) {
				answered++
			}
		}
		if got := w.count() + answered; got > 5 {
			t.Errorf("after %d writes %d effects were sent, %d answers were known", k, w.count(), answered)
		}
		got := append(append(known, b.durable()...), rec.Entries...)
		if p != nil && len(b.durable())+len(rec.Entries) > 0 {
			if n := slices.IndexFunc(got, func(e swarm.Entry) bool { return e.Kind == swarm.EntryRun }); n != len(known) || got[n].Index != 2 {
				t.Errorf("after %d writes the second attempt is not marked: %d of %d", k, n, len(got))
			}
		}
		if len(lossyEntries(got)) != len(lossyEntries(all)) {
			t.Errorf("after %d writes the journal has %d entries, want %d", k, len(withoutRuns(got)), len(all))
		}
	}
}

// lossy allows the one difference there may be: a stream that was cut.
func lossy(first, again []string) []string {
	i := slices.IndexFunc(again, func(s string) bool { return strings.Contains(s, "stream_lost") })
	if i < 0 {
		return first
	}
	out := slices.Clone(first)
	for ; i < len(again) && strings.Contains(again[i], "stream_lost"); i++ {
		out[i] = again[i]
	}
	return out
}

func lossyEntries(list []swarm.Entry) []swarm.Entry {
	return slices.DeleteFunc(withoutRuns(list), func(e swarm.Entry) bool { return e.Op == abi.OpLLMChat && e.Kind == swarm.EntryCancel })
}

// recorded plays a turn and returns all of its journal.
func recorded(t *testing.T, do func(*transcript)) *swarm.PriorAttempt {
	t.Helper()
	var b fakeWriter
	_, rec := live(t, &world{}, &b, nil, do)
	return &swarm.PriorAttempt{Record: swarm.Record{Header: &swarm.TurnHeader{Attempt: 1}, Entries: append(b.durable(), rec.Entries...)}}
}

// A turn that does something else than what is recorded is stopped, and the
// reason names the call and both digests.
func TestDivergence(t *testing.T) {
	t.Parallel()
	base := func(s *transcript) {
		s.call(abi.OpKVPut, "x")
		a := s.submit(abi.OpHTTPFetch, "one")
		s.wait(-1, a)
		s.read(a, 4)
		a.Close()
	}
	for name, c := range map[string]struct {
		do   func(*transcript)
		want string
	}{
		"other request": {func(s *transcript) { s.call(abi.OpKVPut, "y") }, "now call 1 kv.put (digest a1fce4363854ff88), recorded call 1 kv.put (digest 2d711642b726b044)"},
		"other op":      {func(s *transcript) { s.call(abi.OpLog, "x") }, "now call 1 log"},
		"other wait": {func(s *transcript) {
			s.call(abi.OpKVPut, "x")
			s.wait(time.Second, s.submit(abi.OpHTTPFetch, "one"))
		}, "a wait for 2"},
		"no wait": {func(s *transcript) {
			s.call(abi.OpKVPut, "x")
			s.read(s.submit(abi.OpHTTPFetch, "one"), 4)
		}, "now a read from call 2, recorded a wait for 2"},
		"shorter read": {func(s *transcript) {
			s.call(abi.OpKVPut, "x")
			a := s.submit(abi.OpHTTPFetch, "one")
			s.wait(-1, a)
			s.read(a, 3)
		}, "it reads 3 bytes of call 2, recorded 4"},
	} {
		w := &world{}
		s, _ := live(t, w, &fakeWriter{}, recorded(t, base), c.do)
		if got := s.o.j.failure; got == nil || got.Cause != "diverged" || !strings.Contains(got.Message, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		if s.call(abi.OpKVPut, "more"); !strings.Contains(s.lines[len(s.lines)-1], "CANCELLED") {
			t.Errorf("%s: the turn goes on: %s", name, s.lines)
		}
		if w.count() > 0 {
			t.Errorf("%s: something was sent", name)
		}
	}
}

// A request with an unknown outcome is sent once more under the same key, or not at all if
// the operator forbids that.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	p := recorded(t, func(s *transcript) { s.call(abi.OpHTTPFetch, "one") })
	p.Entries = p.Entries[:1]
	for _, once := range []bool{false, true} {
		w := &world{}
		s, rec := live(t, w, &fakeWriter{}, p, func(s *transcript) {
			h := s.o.table[abi.OpHTTPFetch]
			h.noRetry = func(*ops, []byte) bool { return once }
			s.o.table[abi.OpHTTPFetch] = h
			s.call(abi.OpHTTPFetch, "one")
		})
		want, sent := "http.fetch: answer to one under key-1 at 10:00:00", 1
		if once {
			want, sent = "http.fetch: UNAVAILABLE, in_doubt", 0
		}
		if s.lines[0] != want || w.sent["key-1"] != sent || w.count() != sent {
			t.Errorf("once %v: %s; sent %v", once, s.lines, w.sent)
		}
		if n := len(rec.Entries); n != 0 {
			t.Errorf("once %v: the answer is not durable", once)
		}
	}
}

// Sleeps before the last recorded entry are not waited for; later ones are.
func TestRerunDoesNotSleep(t *testing.T) {
	t.Parallel()
	sleep := func(s *transcript) { _ = turnClock{s.clock, s.o.j}.Sleep(s.t.Context(), time.Hour) }
	day := func(s *transcript) {
		sleep(s)
		s.call(abi.OpKVPut, "x")
		sleep(s)
	}
	p := recorded(t, day)
	s, _ := live(t, &world{}, &fakeWriter{}, p, day)
	if c := s.clock.(*sleeper); c.slept != time.Hour || c.now != later.Add(time.Hour) {
		t.Errorf("slept %v, now %v", c.slept, c.now)
	}
}

// A sleep that was called off is as short again.
func TestShortSleep(t *testing.T) {
	t.Parallel()
	cut := later.Add(-30 * time.Minute)
	p := &swarm.PriorAttempt{Record: swarm.Record{Header: &swarm.TurnHeader{Attempt: 1}, Entries: []swarm.Entry{
		{N: 1, Kind: swarm.EntryWait, Call: pathSleep, Time: cut},
	}}}
	s, _ := live(t, &world{}, &fakeWriter{}, p, func(s *transcript) {
		_ = turnClock{s.clock, s.o.j}.Sleep(s.t.Context(), 50*time.Minute)
	})
	if c := s.clock.(*sleeper); c.slept != 0 || !c.now.Equal(cut) {
		t.Errorf("slept %v, now %v", c.slept, c.now)
	}
}

// A turn that is told more than it may move is stopped, and the reason names
// the limit.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	s, rec := live(t, &world{}, &fakeWriter{}, nil, func(s *transcript) {
		s.o.j.limit = 1000
		for range 100 {
			s.call(abi.OpKVPut, strings.Repeat("x", 100))
		}
	})
	if got := s.o.j.failure; got == nil || got.Cause != "journal" || got.Limit != "limits.host_bytes" {
		t.Errorf("%+v", got)
	}
	if len(rec.Entries) > 7 {
		t.Errorf("%d entries", len(rec.Entries))
	}
}
