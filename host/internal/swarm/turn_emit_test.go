package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func chunk(text string) abi.EmitRequest { return abi.EmitRequest{Chunk: &text} }
func note(text string) abi.EmitRequest  { return abi.EmitRequest{Note: &text} }

func progress(text string, fraction float64) abi.EmitRequest {
	return abi.EmitRequest{Progress: &abi.Progress{Text: text, Fraction: &fraction}}
}

// emit makes emissions and returns their statuses.
func emit(t *swarm.Turn, all ...abi.EmitRequest) (got []string) {
	for _, req := range all {
		status, fault := t.Emit(req)
		if fault != nil {
			got = append(got, fault.Error())
			continue
		}
		got = append(got, string(status))
	}
	return got
}

// finishing ends the task after what a turn does.
func finishing(do func(ctx context.Context, t *swarm.Turn) error) behave {
	return func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		if err := do(ctx, t); err != nil {
			return failed(err)
		}
		call(t, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
}

// watch follows a task from a cursor to its end.
func (h *hive) watch(task string, after int64, how ...func(*swarm.Feed)) <-chan []swarm.Event {
	h.t.Helper()
	feed, err := h.rt.Follow(context.Background(), key(task), after)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, begin := range how {
		begin(feed)
	}
	all := make(chan []swarm.Event, 1)
	go func() {
		defer feed.Close()
		var got []swarm.Event
		for {
			batch, err := feed.Next(context.Background())
			if err != nil {
				if !errors.Is(err, io.EOF) {
					h.t.Error("Next:", err)
				}
				all <- got
				return
			}
			got = append(got, batch...)
		}
	}()
	return all
}

// lines shows events as "seq name extra", without what is not of emissions.
func lines(events []swarm.Event) (out []string) {
	for _, e := range events {
		line := fmt.Sprint(e.Seq, " ", e.Name)
		if strings.HasPrefix(e.Name, "agent_") {
			line += " " + string(e.Extra)
		}
		out = append(out, line)
	}
	return out
}

func TestEmit(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begin := make(chan struct{})
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		<-begin
		got := emit(turn, progress("", 0.25), chunk("Hel"), note("a <note>"), chunk("lo"), progress("half", 0.5))
		if diff := cmp.Diff([]string{"ok", "ok", "ok", "ok", "ok"}, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	r := h.mustPost("go", task("t"))
	reader := h.watch("t", 0)
	close(begin)
	h.answer(r)
	got := <-reader
	want := []string{
		`1 new_message`,
		`0 agent_progress {"caller":"boss","turn":1,"n":1,"text":"","fraction":0.25}`,
		`0 agent_chunk {"caller":"boss","turn":1,"n":2,"text":"Hel"}`,
		`0 agent_note {"caller":"boss","turn":1,"n":3,"text":"a \u003cnote\u003e"}`,
		`0 agent_chunk {"caller":"boss","turn":1,"n":4,"text":"lo"}`,
		`0 agent_progress {"caller":"boss","turn":1,"n":5,"text":"half","fraction":0.5}`,
		`2 agent_output {"caller":"boss","n":5,"progress":{"text":"half","fraction":0.5},"text":"Hello","turn":1}`,
		`3 tool_call`, `4 task_complete_call`, `5 new_message`, `6 task_complete`,
	}
	if diff := cmp.Diff(want, lines(got)); diff != "" {
		t.Errorf("what a reader gets (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(append(want[:1:1], want[6:]...), lines(h.events("t"))); diff != "" {
		t.Errorf("the log (-want +got)\n%s", diff)
	}
	if got := got[1].Text() + "|" + got[5].Text() + "|" + got[3].Text(); got !=
		"agent boss is at 25 %|agent boss is at 50 %: half|agent boss notes: a <note>" {
		t.Errorf("described as %s", got)
	}
}

// A turn that only shows a note leaves its number in the log, one that shows
// nothing leaves nothing.
func TestOutputNamesTheLastNumber(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		emit(turn, note("x"))
		return nil
	})
	h.ask("go", task("t"))
	if got := lines(h.events("t"))[1]; got != `2 agent_output {"caller":"boss","n":1,"text":"","turn":1}` {
		t.Error(got)
	}
	h.agents.by["boss"] = script
	h.ask("go", task("u"))
	if slices.Contains(names(h.events("u")), "agent_output") {
		t.Error("a turn that emitted nothing has output")
	}
}

// What a failed turn has shown was seen, so it is logged with the failure.
func TestEmitOfAFailedTurn(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		emit(turn, chunk("so far"))
		return errors.New("no further")
	})
	h.ask("go", task("t"))
	got := lines(h.events("t"))
	want := `2 agent_output {"caller":"boss","failed":true,"n":1,"text":"so far","turn":1}`
	if got[1] != want || !strings.HasPrefix(got[2], "3 agent_error") {
		t.Errorf("the log is %v", got)
	}
}

func TestEmitLimits(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	large := chunk(strings.Repeat("x", abi.MaxEmitChunk))
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		for range abi.MaxEmitBytes / abi.MaxEmitChunk {
			if got := emit(turn, large); got[0] != "ok" {
				return errors.New(got[0])
			}
		}
		if _, fault := turn.Emit(chunk("x")); fault == nil || fault.Code != abi.CodeLimit || fault.Reason != "bytes" {
			return fmt.Errorf("one more byte: %v", fault)
		}
		for range abi.MaxEmits - abi.MaxEmitBytes/abi.MaxEmitChunk {
			if got := emit(turn, progress("", 0)); got[0] != "ok" {
				return errors.New(got[0])
			}
		}
		if _, fault := turn.Emit(progress("", 1)); fault == nil || fault.Code != abi.CodeLimit || fault.Reason != "emits" {
			return fmt.Errorf("one more: %v", fault)
		}
		return nil
	})
	if a := h.ask("go", task("t")); a.Body != "done" {
		t.Fatal(a.Body)
	}
	var out struct {
		N    int64
		Text string
	}
	if err := json.Unmarshal(h.events("t")[1].Extra, &out); err != nil || out.N != abi.MaxEmits || len(out.Text) != abi.MaxEmitBytes {
		t.Errorf("logged %d emissions, %d bytes, %v", out.N, len(out.Text), err)
	}
}

// A reader that does not read makes emit busy once its room is used up, but
// slows nothing down, and finds the whole text in the log.
func TestEmitIsBusy(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begin := make(chan struct{})
	var oks, busy int
	const pieces = 1000
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		<-begin
		for range pieces {
			switch got := emit(turn, chunk("x")); got[0] {
			case "ok":
				oks++
			case "busy":
				busy++
			default:
				return errors.New(got[0])
			}
		}
		return nil
	})
	r := h.mustPost("go", task("t"))
	feed, err := h.rt.Follow(context.Background(), key("t"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	close(begin)
	h.answer(r)
	if oks == 0 || busy == 0 || oks+busy != pieces {
		t.Errorf("%d ok, %d busy", oks, busy)
	}
	var got []string
	for {
		batch, err := feed.Next(context.Background())
		if err != nil {
			break
		}
		got = append(got, lines(batch)...)
	}
	if n := len(got) - 6; n != oks {
		t.Errorf("the reader got %d pieces of %d that were ok", n, oks)
	}
	want := fmt.Sprintf(`2 agent_output {"caller":"boss","n":%d,"text":"%s","turn":1}`, pieces, strings.Repeat("x", pieces))
	if got[oks+1] != want {
		t.Errorf("behind the pieces comes %s", got[oks+1])
	}
}

// Of two readers, the one that keeps up gets all; the other loses the oldest
// pieces and nothing of the log.
func TestSlowReaderLosesOnlyVolatileEvents(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begin, gone := make(chan struct{}), make(chan struct{})
	const pieces = 1000
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		<-begin
		for range pieces {
			if got := emit(turn, chunk("x")); got[0] != "ok" {
				return errors.New(got[0])
			}
			<-gone
		}
		return nil
	})
	r := h.mustPost("go", task("t"))
	follow := func() *swarm.Feed {
		feed, err := h.rt.Follow(context.Background(), key("t"), 0)
		if err != nil {
			t.Fatal(err)
		}
		return feed
	}
	quick, slow := follow(), follow()
	defer quick.Close()
	defer slow.Close()
	close(begin)
	drain := func(feed *swarm.Feed) (all []swarm.Event) {
		for {
			batch, err := feed.Next(context.Background())
			if err != nil {
				return all
			}
			for _, e := range batch {
				if e.Name == "agent_chunk" && feed == quick {
					gone <- struct{}{}
				}
			}
			all = append(all, batch...)
		}
	}
	if got := drain(quick); len(got) != pieces+6 {
		t.Errorf("the quick reader got %d events", len(got))
	}
	h.answer(r)
	got := drain(slow)
	if n := len(got) - 6; n < 1 || n >= pieces {
		t.Errorf("the slow reader got %d pieces", n)
	}
	got = slices.DeleteFunc(got, func(e swarm.Event) bool { return e.Seq == 0 })
	if diff := cmp.Diff(lines(h.events("t")), lines(got)); diff != "" {
		t.Errorf("the slow reader's log (-want +got)\n%s", diff)
	}
}

// A piece never comes behind the event that sums its turn up, however turns and
// readers fall together.
func TestPiecesComeBeforeTheirSum(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begin := make(chan struct{})
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		<-begin
		emit(turn, chunk("a"), chunk("b"), chunk("c"))
		if turn.Number() < 15 {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
			return swarm.Outcome{}
		}
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
	h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		emit(turn, note("d"))
		call(turn, mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": "y"})
		return swarm.Outcome{}
	}
	r := h.mustPost("go", task("t"))
	var readers []<-chan []swarm.Event
	for range 8 {
		readers = append(readers, h.watch("t", 0))
	}
	close(begin)
	h.answer(r)
	for _, reader := range readers {
		summed, seen := map[int64]bool{}, 0
		for _, e := range <-reader {
			if !strings.HasPrefix(e.Name, "agent_") {
				continue
			}
			var x struct{ Turn, N int64 }
			if err := json.Unmarshal(e.Extra, &x); err != nil {
				t.Fatal(err)
			}
			if e.Seq > 0 {
				summed[x.Turn] = true
			} else if seen++; summed[x.Turn] {
				t.Errorf("%s %d of turn %d comes behind its sum", e.Name, x.N, x.Turn)
			}
		}
		if len(summed) != 15 || seen != 8*3+7 {
			t.Errorf("a reader got %d sums and %d pieces", len(summed), seen)
		}
	}
}

// A feed that begins with the running turns has what they emitted before it, wherever in them it
// comes: each emission is in the first event or behind it, once, and before the sum.
func TestFeedBeginsWithRunningTurns(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	emitted, goOn := make(chan struct{}), make(chan struct{})
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		emit(turn, chunk("Hel"), progress("half", 0.5), chunk("lo"))
		close(emitted)
		<-goOn
		emit(turn, chunk("!"))
		return nil
	})
	r := h.mustPost("go", task("t"))
	<-emitted
	feed, err := h.rt.Follow(context.Background(), key("t"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	feed.BeginWithRunningTurns()
	var got []swarm.Event
	for len(got) < 2 {
		batch, err := feed.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, batch...)
	}
	close(goOn)
	h.answer(r)
	for {
		batch, err := feed.Next(context.Background())
		if err != nil {
			break
		}
		got = append(got, batch...)
	}
	want := []string{
		`1 new_message`,
		`0 agent_emitted {"caller":"boss","cuts":[3,2],"n":3,"reports":[{"at":1,"text":"half","fraction":0.5}],"text":"Hello","turn":1}`,
		`0 agent_chunk {"caller":"boss","turn":1,"n":4,"text":"!"}`,
		`2 agent_output {"caller":"boss","n":4,"progress":{"text":"half","fraction":0.5},"text":"Hello!","turn":1}`,
	}
	if diff := cmp.Diff(want, lines(got)[:4]); diff != "" {
		t.Errorf("what a late reader gets (-want +got)\n%s", diff)
	}
}

// TestLateReadersMissNothing opens feeds at any time of many turns.
func TestLateReadersMissNothing(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		for range 8 { // all events fit into the buffer, so that no slow reader loses one
			emit(turn, chunk("a"), note("b"), progress("c", 0.5))
			runtime.Gosched()
		}
		if turn.Number() < 15 {
			call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
			return swarm.Outcome{}
		}
		call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
		return swarm.Outcome{}
	}
	h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		emit(turn, chunk("d"))
		call(turn, mail.ToolSendResponse, obj{"target": "boss", "subject": "s", "body": "y"})
		return swarm.Outcome{}
	}
	r := h.mustPost("go", task("t"))
	var readers []<-chan []swarm.Event
	for range 30 {
		readers = append(readers, h.watch("t", 0, (*swarm.Feed).BeginWithRunningTurns))
		runtime.Gosched()
	}
	h.answer(r)
	for _, reader := range readers {
		last, summed := map[int64]int64{}, map[int64]bool{}
		for _, e := range <-reader {
			if !strings.HasPrefix(e.Name, "agent_") {
				continue
			}
			var x struct{ Turn, N int64 }
			if err := json.Unmarshal(e.Extra, &x); err != nil {
				t.Fatal(err)
			}
			n, seen := last[x.Turn]
			switch {
			case summed[x.Turn]:
				t.Errorf("%s %d of turn %d comes behind its sum", e.Name, x.N, x.Turn)
			case e.Name == "agent_emitted" && seen, e.Name != "agent_emitted" && e.Seq == 0 && x.N != n+1, e.Seq > 0 && seen && x.N != n:
				t.Errorf("%s %d of turn %d comes behind %d", e.Name, x.N, x.Turn, n)
			}
			last[x.Turn], summed[x.Turn] = x.N, e.Seq > 0
		}
		if len(summed) != 15 {
			t.Errorf("a reader got %d turns", len(summed))
		}
	}
}

// A turn that runs on after its task has ended shows nothing, and a killed one nothing
// even when the task runs again.
func TestEmitIsClosed(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(h *hive) { h.opt.Tokens = 8 })
	begun, ended, reopened := make(chan struct{}), make(chan struct{}), make(chan struct{})
	got := make(chan []string, 2)
	h.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		statuses := emit(turn, chunk("a"))
		close(begun)
		<-ended
		statuses = append(statuses, emit(turn, chunk("b"))...)
		<-reopened
		got <- append(statuses, emit(turn, chunk("c"))...)
		return swarm.Outcome{}
	}
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Body == "again" {
			return script(ctx, turn)
		}
		call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "x"})
		return swarm.Outcome{}
	}
	h.mustPost("go", task("t"))
	<-begun
	if err := h.rt.CancelTask(context.Background(), key("t"), "alice"); err != nil {
		t.Fatal(err)
	}
	close(ended)
	h.agents.mu.Lock()
	h.agents.by["math"] = script
	h.agents.mu.Unlock()
	r := h.mustPost("again", task("t"))
	close(reopened)
	if diff := cmp.Diff([]string{"ok", "closed", "closed"}, <-got); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	h.answer(r)
	for _, e := range h.events("t") {
		if e.Name == "agent_output" {
			t.Errorf("a killed turn's output is logged: %s", e.Extra)
		}
	}
}

// A turn that is run again repeats its numbers.
func TestEmitRepeatsNumbers(t *testing.T) {
	t.Parallel()
	h := newHive(t)
	begun := make(chan struct{}, 1)
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		emit(turn, chunk("a"), chunk("b"))
		begun <- struct{}{}
		<-ctx.Done()
		return failed(context.Cause(ctx))
	}
	h.mustPost("go", task("t"))
	<-begun
	h.stop()
	h.agents.by["boss"] = finishing(func(_ context.Context, turn *swarm.Turn) error {
		emit(turn, chunk("a"), chunk("b"))
		return nil
	})
	h.start()
	got := lines(<-h.watch("t", 1))
	got = slices.DeleteFunc(got, func(s string) bool { return !strings.Contains(s, "agent_output") })
	if diff := cmp.Diff([]string{`2 agent_output {"caller":"boss","n":2,"text":"ab","turn":1}`}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
