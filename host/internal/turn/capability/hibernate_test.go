package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
)

// slowModel answers each call when the test lets it.
type slowModel struct {
	parrot
	// begun receives the text of each call, ended the cause of each that was cancelled.
	begun chan string
	ended chan error
	// go receives once for each piece that may be sent.
	pieces chan struct{}
}

func newSlowModel() *slowModel {
	return &slowModel{begun: make(chan string, 8), ended: make(chan error, 8), pieces: make(chan struct{})}
}

// Chat waits for the test before each word of the answer, or once for an answer that is not a stream.
func (m *slowModel) Chat(ctx context.Context, req abi.ChatRequest, key string, emit func(abi.ChatPiece) error) (abi.ChatResponse, swarm.Spend, *ModelFault) {
	text := req.Messages[len(req.Messages)-1].Content
	if text == "boom" {
		panic("a fault of the host")
	}
	m.begun <- text
	words := []string{text}
	if emit != nil {
		words = strings.SplitAfter(text, " ")
	}
	for _, word := range words {
		select {
		case <-m.pieces:
		case <-ctx.Done():
			m.ended <- context.Cause(ctx)
			return abi.ChatResponse{}, swarm.Spend{Tokens: 1}, &ModelFault{Fault: abi.Errorf(abi.CodeCancelled, abi.OpLLMChat, "cancelled", "stopped")}
		}
		if emit != nil {
			_ = emit(abi.ChatPiece{Delta: word})
		}
	}
	return m.parrot.Chat(ctx, req, key, nil)
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 30 s: ", what)
		}
	}
}

// hibernated waits until turns have given their sandbox up n times.
func (h *host) hibernated(n int64) {
	h.t.Helper()
	waitFor(h.t, fmt.Sprint(n, " turns without a sandbox"), func() bool { return h.exec.WaitingTurns().CountHibernations() >= n })
}

// busy changes all that a turn can change, and asks twice in between.
func busy(runs *atomic.Int64) func(v *visit) {
	return func(v *visit) {
		if strings.Contains(string(v.in.Message), "::timer::") {
			v.tell([]string{"late"})
			return
		}
		runs.Add(1)
		told := []string{
			v.call(abi.OpEmit, `{"chunk":"one "}`), v.call(abi.OpLog, `{"message":"begun"}`), v.call(abi.OpKVPut, `{"key":"k","value":"1"}`),
			v.call(abi.OpBlobPut, `{"data":"dGVhCg=="}`), v.call(abi.OpTimerSet, `{"after":"1h","body":"late"}`),
		}
		before := v.call(abi.OpRandom, `{}`)
		told = append(told, v.call(abi.OpLLMChat, ask("first")))
		after := v.call(abi.OpRandom, `{}`)
		told = append(told, v.call(abi.OpEmit, `{"chunk":"two "}`), fmt.Sprint(before == after, len(after)), v.call(abi.OpKVGet, `{"key":"k"}`))
		told = append(told, v.stream(ask("a few words")))
		v.tell(told)
	}
}

// stream reads an answer as it comes.
func (v *visit) stream(req string) string {
	a, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(req))
	if fault != nil {
		return fault.Error()
	}
	defer a.Close()
	return v.readStream(a)
}

// readStream reads an answer to its end.
func (v *visit) readStream(a turn.Answer) string {
	var all []byte
	for {
		p := make([]byte, 1000)
		n, fault := a.Read(v.ctx, p)
		if all = append(all, p[:n]...); fault != nil || n == 0 {
			return strings.ReplaceAll(string(all), "\n", "|") + fmt.Sprint(fault)
		}
	}
}

// leftBehind is all that a turn has left, without times: its task's story, its record and its
// usage.
func (h *host) leftBehind() []string {
	h.t.Helper()
	lines := h.story()
	rec, err := h.store.Record(context.Background(), h.key(), 1)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range rec.Entries {
		if e.Kind == swarm.EntryRead {
			continue // how much is there at once is a matter of time
		}
		e.Time, e.N = time.Time{}, 0
		switch e.Op { // what follows from the store's own secret
		case abi.OpRandom:
			e.Answer = nil
		case abi.OpMail:
			e.Digest = nil
		}
		raw, _ := json.Marshal(e)
		lines = append(lines, blur(string(raw)))
	}
	rec.End.At, rec.End.Usage.CPU = time.Time{}, 0
	end, _ := json.Marshal(rec.End)
	snap, err := h.rt.Task(context.Background(), h.key())
	if err != nil {
		h.t.Fatal(err)
	}
	usage, _ := json.Marshal(snap.Task.Usage.Spend)
	return append(lines, blur(string(end)), string(usage))
}

// A turn that gives its sandbox up wherever it waits leaves the same behind as one that keeps it,
// and asks each thing once.
func TestHibernate(t *testing.T) {
	t.Parallel()
	run := func(hibernates bool) (left []string, runs int64) {
		var n atomic.Int64
		m := newSlowModel()
		h := talking(t, nil, busy(&n))
		h.models = map[string]Model{"default": m}
		h.hibernates = hibernates
		h.start(0, false)
		defer h.stop()
		answered := make(chan []string, 1)
		go func() { answered <- h.told(t) }()
		for i := range int64(4) { // the first answer, and three words of the second
			if i < 2 {
				<-m.begun
			}
			if hibernates {
				h.hibernated(i + 1)
			}
			m.pieces <- struct{}{}
		}
		told := <-answered
		if len(m.begun) != 0 {
			t.Errorf("asked again: %q", <-m.begun)
		}
		return append(h.leftBehind(), blur(strings.Join(told, "\n"))), n.Load()
	}
	kept, once := run(false)
	given, often := run(true)
	if once != 1 || often != 5 {
		t.Errorf("the turn ran %d times with its sandbox, %d without; want 1 and 5", once, often)
	}
	if diff := cmp.Diff(kept, given); diff != "" {
		t.Errorf("- with its sandbox, + without:\n%s", diff)
	}
}

// What waits for a person, and what runs in an action, keeps its sandbox.
func TestHibernateOnlyModelsAndRequests(t *testing.T) {
	t.Parallel()
	o := bareOps(t, table{abi.OpAction: {effect: func(*ops, context.Context, []byte, bool) (effectFunc, *abi.Error) {
		return func(ctx context.Context, _ *asyncOp) *abi.Error { <-ctx.Done(); return nil }, nil
	}}})
	w := &WaitingTurns{}
	w.Bound(0, time.Millisecond)
	o.waitingTurns = w
	a, fault := o.Submit(t.Context(), abi.OpAction, []byte("{}"))
	if fault != nil {
		t.Fatal(fault)
	}
	defer a.Close()
	if fault, ok := o.hibernate(abi.OpAction, nil, time.Time{}); ok || fault != nil || w.CountHibernations() != 0 {
		t.Error("an action was left behind")
	}
}

// A wait with a timeout ends when it would have ended with a sandbox.
func TestHibernateUntilTimeout(t *testing.T) {
	t.Parallel()
	m := newSlowModel()
	h := talking(t, nil, func(v *visit) {
		a, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(ask("x")))
		if fault != nil {
			v.tell([]string{fault.Error()})
			return
		}
		defer a.Close()
		i, late := v.t.Ops.Wait(v.ctx, []turn.Answer{a}, 300*time.Millisecond)
		v.tell([]string{fmt.Sprint(i, " ", late)})
	})
	h.models, h.hibernates = map[string]Model{"default": m}, true
	h.start(0, false)
	defer h.stop()
	if got := h.told(t); !strings.Contains(got[0], "nothing came within 300ms") {
		t.Errorf("told %q", got)
	}
	if n := h.exec.WaitingTurns().CountHibernations(); n != 1 {
		t.Errorf("%d turns without a sandbox, want 1", n)
	}
	if cause := <-m.ended; !errors.Is(cause, context.Canceled) {
		t.Errorf("the call was cancelled with %v", cause)
	}
}

// A turn that waits without a sandbox ends with its task, at its wall limit and with its host; the
// call ends with it. After a start it goes on.
func TestHibernatedTurnEnds(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T, change func(*swarm.Definition)) (*host, *slowModel) {
		m := newSlowModel()
		h := talking(t, nil, func(v *visit) {
			v.call(abi.OpLog, `{"message":"begun"}`)
			v.tell([]string{v.call(abi.OpLLMChat, ask("x"))})
		})
		h.models, h.hibernates, h.change = map[string]Model{"default": m}, true, change
		h.start(0, false)
		return h, m
	}
	post := func(t *testing.T, h *host, m *slowModel) {
		if _, err := h.rt.Submit(t.Context(), h.post()); err != nil {
			t.Fatal(err)
		}
		<-m.begun
		h.hibernated(1)
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		h, m := setUp(t, nil)
		defer h.stop()
		post(t, h, m)
		if err := h.rt.CancelTask(t.Context(), h.key(), "alice"); err != nil {
			t.Fatal(err)
		}
		<-m.ended
	})
	t.Run("wall limit", func(t *testing.T) {
		t.Parallel()
		h, m := setUp(t, func(d *swarm.Definition) { d.Agents[0].Limits.Wall = 300 * time.Millisecond })
		defer h.stop()
		post(t, h, m)
		<-m.ended
		var rec swarm.Record
		waitFor(t, "the end of the turn", func() bool {
			var err error
			rec, err = h.store.Record(t.Context(), h.key(), 1)
			return err == nil && rec.End != nil
		})
		if rec.End.Exit != "deadline" || rec.End.Usage.Spend.Tokens != 100 || rec.End.Calls[abi.OpLLMChat] != 1 {
			t.Errorf("the turn ended as %+v", rec.End)
		}
		waitFor(t, "what the agent has logged", func() bool { return slices.Contains(h.story(), "agent_logged") })
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		m := newSlowModel()
		h := talking(t, nil, func(v *visit) {
			b, fault := v.t.Ops.Submit(v.ctx, abi.OpLLMChat, []byte(ask("boom")))
			if fault != nil {
				return
			}
			defer b.Close()
			v.tell([]string{v.call(abi.OpLLMChat, ask("x"))})
		})
		h.models, h.hibernates = map[string]Model{"default": m}, true
		h.change = func(d *swarm.Definition) { d.Agents[0].Limits.Wall = 300 * time.Millisecond }
		h.start(0, false)
		defer h.stop()
		post(t, h, m)
		<-m.ended
		waitFor(t, "the end of the turn", func() bool {
			rec, err := h.store.Record(t.Context(), h.key(), 1)
			return err == nil && rec.End != nil
		})
	})
	t.Run("host", func(t *testing.T) {
		t.Parallel()
		h, m := setUp(t, nil)
		post(t, h, m)
		h.stop()
		<-m.ended
		h.start(0, false)
		defer h.stop()
		<-m.begun
		h.hibernated(1)
		m.pieces <- struct{}{}
		if got := h.told(t); !strings.Contains(got[0], `"text":"x"`) {
			t.Errorf("told %q", got)
		}
	})
}

// What interrupts a turn that has hibernated does not count against the time in which it repeats
// itself, and what it has slept it does not sleep again.
func TestRepeatOfHibernatedTurn(t *testing.T) {
	t.Parallel()
	w, clock := &fakeWriter{}, &sleepingClock{}
	j := newJournal(t.Context(), w, w, clock, func() time.Time { return later })
	defer j.stop(nil)
	j.wakeFrom(&hibernation{group: newOpGroup(w, 0)})
	interrupted := make(chan struct{})
	close(interrupted)
	cancelled := j.cancelledAfterRepeat(interrupted)
	for range 2 {
		if err := j.sleep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if isClosed(cancelled) || clock.slept != 0 {
		t.Errorf("while it repeats itself: cancelled %v, slept %d times", isClosed(cancelled), clock.slept)
	}
	j.endRepeat()
	j.endRepeat()
	<-cancelled
	if err := j.sleep(t.Context(), time.Hour); err != nil || clock.slept != 1 {
		t.Errorf("after that: %v, slept %d times", err, clock.slept)
	}
}

// sleepingClock counts how often it is slept by.
type sleepingClock struct {
	stillClock
	slept int
}

func (c *sleepingClock) Sleep(context.Context, time.Duration) error { c.slept++; return nil }
