package capability

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// The effects of a turn that ends in the moment in which it hibernates end, also those that it had
// let go.
func TestHibernateAtTheEnd(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 2)
	o := bareOps(t, table{abi.OpLLMChat: {outlives: true, effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
		return func(ctx context.Context, _ *asyncOp) *abi.Error { begun <- struct{}{}; <-ctx.Done(); return nil }, nil
	}}})
	o.waitingTurns = &WaitingTurns{}
	for range 2 {
		a, fault := o.Submit(t.Context(), abi.OpLLMChat, []byte("{}"))
		if fault != nil {
			t.Fatal(fault)
		}
		defer a.Close()
		wantSoon(t, begun, "the op begins")
	}
	first, second := o.j.inFlight[0].async, o.j.inFlight[1].async
	second.unlink = func() bool { return false } // as of a context that has ended
	if fault, ok := o.hibernate(abi.OpLLMChat, nil, time.Time{}); ok || fault != nil {
		t.Errorf("a turn that ends has hibernated: %v", fault)
	}
	wantSoon(t, first.ctx.Done(), "the op ends whose turn did not hibernate")
}

// wantSoon waits for something to happen, and fails with what did not.
func wantSoon(t *testing.T, happens <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(2 * time.Minute):
		t.Fatalf("not within two minutes: %s", what)
	}
}

// The timers of a turn that repeats itself count among its task's all the time.
func TestTimersOfRepeatedTurn(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	repeats, goOn := make(chan struct{}), make(chan struct{})
	setTimers := func(v *visit, most int) (set int) {
		for set < most && !strings.HasPrefix(v.call(abi.OpTimerSet, `{"after":"1h","body":"late"}`), "LIMIT") {
			set++
		}
		return set
	}
	s := newHibernatingHost(t, func(v *visit) {
		if m, _ := mail.ParseMessage(v.in.Message); m.Payload.Body != "go" {
			v.tell([]string{fmt.Sprint(setTimers(v, 99))})
			return
		}
		v.mail(mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
	})
	s.modules["math"] = guest{"m1", func(v *visit) {
		if runs.Add(1) == 2 {
			close(repeats)
			<-goOn
		}
		setTimers(v, 10)
		v.call(abi.OpLLMChat, ask("x"))
	}}
	s.begin()
	defer s.stop()
	defer close(goOn)
	s.first.pieces <- struct{}{}
	<-repeats
	more := s.post()
	more.Key, more.Body, more.MustExist = "more", "more", true
	if a, err := s.send(more); err != nil || a.Body != fmt.Sprint(swarm.MaxTimers-10) {
		t.Errorf("%+v, %v; want %d timers beside 10", a, err, swarm.MaxTimers-10)
	}
}

// What an action in a process has logged and marked before its turn hibernated is not lost: it is
// not run again.
func TestHibernateKeepsLogsAndSpans(t *testing.T) {
	t.Parallel()
	mark := func(v *visit, text string) {
		v.call(abi.OpLog, fmt.Sprintf(`{"message":%q}`, text))
		v.call(abi.OpSpan, fmt.Sprintf(`{"name":%q}`, text))
	}
	run := func(hibernates bool) []string {
		s := newHibernatingHost(t, func(v *visit) {
			mark(v, "before")
			v.call(abi.OpAction, `{"name":"shop","args":{}}`)
			v.call(abi.OpSpan, `{"name":"asking"}`)
			told := v.call(abi.OpLLMChat, ask("x"))
			v.call(abi.OpSpan, `{"id":2,"attributes":{"city":"Oslo"}}`)
			mark(v, "after")
			v.tell([]string{told})
		})
		s.newNonRepeating("shop", func(v *visit, _ string) (string, *turn.Exit) {
			mark(v, "inside")
			return "1", nil
		})
		s.hibernates = hibernates
		s.start(0, false)
		defer s.stop()
		go func() {
			<-s.first.begun
			if hibernates {
				s.hibernated(1)
			}
			s.first.pieces <- struct{}{}
		}()
		left := []string{s.told(t)[0], s.spans(t)}
		for _, e := range s.events() {
			if e.Name == "agent_logged" {
				left = append(left, string(e.Extra))
			}
		}
		return left
	}
	if diff := cmp.Diff(run(false), run(true)); diff != "" {
		t.Errorf("- with its sandbox, + without:\n%s", diff)
	}
}

// callObserver keeps the calls of committed turns.
type callObserver struct{ calls atomic.Value }

func (o *callObserver) Committed(c swarm.Change) {
	if c.Turn != nil {
		o.calls.Store(c.Turn.Calls)
	}
}

// The tokens of a stream that was answered before its turn hibernated again are in its span.
func TestHibernateKeepsTokens(t *testing.T) {
	t.Parallel()
	o := &callObserver{}
	s := newHibernatingHost(t, func(v *visit) { v.tell([]string{v.stream(ask("one")), v.stream(ask("two words"))}) })
	s.observer = o
	r := s.begin()
	defer s.stop()
	s.first.pieces <- struct{}{}
	<-s.first.begun
	for n := range int64(2) {
		s.hibernated(2 + n)
		s.first.pieces <- struct{}{}
	}
	s.answer(r)
	waitFor(t, "the commit is observed", func() bool { return o.calls.Load() != nil })
	var got []string
	for _, c := range o.calls.Load().([]swarm.CallShape) {
		got = append(got, fmt.Sprintf("%s %q %d %d", c.Path, c.Code, c.InputTokens, c.OutputTokens))
	}
	if want := []string{`1 "" 2 1`, `2 "" 8 1`}; !cmp.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// A turn that computes much between its waits hibernates less often: all its parts together compute
// a bounded multiple of its limit.
func TestHibernateBoundsComputing(t *testing.T) {
	t.Parallel()
	limit := turn.Limits{}.WithDefaults().CPU
	for _, c := range []struct {
		cpu  time.Duration // of each part
		want int64
	}{{limit * 6 / 10, 1}, {limit * 2 / 10, 3}, {0, 4}} {
		s := newHibernatingHost(t, func(v *visit) {
			v.cpu = c.cpu
			var told []string
			for n := range 4 {
				told = append(told, v.call(abi.OpLLMChat, ask(fmt.Sprint("x", n))))
			}
			v.tell(told)
		})
		r := s.begin()
		for n := range int64(4) {
			if n > 0 {
				<-s.first.begun
			}
			s.hibernated(min(n+1, c.want))
			s.first.pieces <- struct{}{}
		}
		if a := s.answer(r); strings.Count(a.Body, `"text":"x`) != 4 {
			t.Errorf("%+v", a)
		}
		if got := s.exec.WaitingTurns().CountHibernations(); got != c.want {
			t.Errorf("a turn whose parts compute %v hibernates %d times, want %d", c.cpu, got, c.want)
		}
		s.stop()
	}
}
