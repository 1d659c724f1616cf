package swarm_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// loglines collects what goes to the host's log.
type loglines struct {
	mu  sync.Mutex
	all []string
}

func (l *loglines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *loglines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(strings.Join(l.all, ""), text)
}

func (l *loglines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(strings.Join(l.all, ""), text)
}

// answered is the recorded result of an earlier attempt.
func answered(v any, fault *abi.Error) *swarm.Entry {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &swarm.Entry{Kind: swarm.EntryCall, Answer: raw, Err: fault, Time: time.Now().Add(time.Hour)}
}

// A repeated call is staged with its recorded result, independent of the current state;
// it is neither shown nor logged again, and later calls are.
func TestRepeat(t *testing.T) {
	log := &loglines{}
	h := newHive(t, func(h *hive) { h.opt.Logger, h.opt.LogWords = slog.New(slog.NewTextHandler(log, nil)), true })
	var texts []string
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Sender.Type == mail.System {
			return script(t.Context(), turn)
		}
		note := "seen before"
		turn.SetReplay(answered(abi.EmitResponse{Status: abi.EmitOK}, nil))
		_, _ = turn.Emit(abi.EmitRequest{Note: &note})
		turn.Log(abi.LogRequest{Message: "logged before"})
		turn.SetReplay(answered(nil, abi.Errorf(abi.CodeDenied, abi.OpMail, "comm_targets", "not then")))
		texts = append(texts, call(turn, mail.ToolSendRequest, obj{"target": "math", "subject": "s", "body": "b"}))
		turn.SetReplay(answered(abi.MailResponse{Text: "SUCCESS: as it was"}, nil))
		texts = append(texts, call(turn, mail.ToolHelp, obj{}))
		at := turn.Clock().Now()
		turn.SetReplay(nil)
		if time.Until(at) < 30*time.Minute {
			t.Error("the clock does not show the recorded time")
		}
		_, _ = turn.Emit(abi.EmitRequest{Note: &note})
		turn.Log(abi.LogRequest{Message: "logged now"})
		return swarm.Outcome{}
	}
	a := h.ask("x", task("t"))
	if !strings.HasPrefix(a.Body, "boss got [::invalid_recipient::] not then") {
		t.Errorf("%+v", a)
	}
	if want := "ERROR DENIED: not then|SUCCESS: as it was"; strings.Join(texts, "|") != want {
		t.Errorf("%q, want %q", texts, want)
	}
	if log.has("logged before") || !log.has("logged now") {
		t.Errorf("%q", log.all)
	}
	logged := 0
	for _, e := range h.events("t") {
		if e.Name == "agent_output" && !strings.Contains(string(e.Extra), `"n":2`) {
			t.Errorf("numbers: %s", e.Extra)
		}
		// The task's log has each line once, also those of the earlier attempt.
		if want := `"lines":[{"level":"","message":"logged before"},{"level":"","message":"logged now"}]`; e.Name == "agent_logged" && strings.Contains(string(e.Extra), want) {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("%d events have the lines of both attempts in order", logged)
	}
}

// What a turn logs takes at most 64 KiB of its task's log, as it is encoded there, whatever its
// lines are made of; the event says how many were left out.
func TestLoggedLinesHaveABound(t *testing.T) {
	for name, line := range map[string]abi.LogRequest{
		"nothing":      {},
		"escapes":      {Message: strings.Repeat("<", 1<<10)},
		"long":         {Level: strings.Repeat("x", 1<<10), Fields: map[string]any{"f": strings.Repeat("y", 1<<10)}},
		"one too long": {Message: strings.Repeat("m", 65<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			const lines = 4000
			h := newHive(t)
			h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
				for range lines {
					turn.Log(line)
				}
				return script(t.Context(), turn)
			}
			h.ask("x", task("t"))
			found := false
			for _, e := range h.events("t") {
				if e.Name != "agent_logged" {
					continue
				}
				found = true
				var got struct {
					Lines   []abi.LogRequest `json:"lines"`
					LeftOut int              `json:"left_out"`
				}
				if err := json.Unmarshal(e.Extra, &got); err != nil {
					t.Fatal(err)
				}
				if n := len(got.Lines) + got.LeftOut; len(e.Extra) > 65<<10 || n != lines {
					t.Errorf("an event of %d bytes has %d lines and leaves out %d, of %d", len(e.Extra), len(got.Lines), got.LeftOut, lines)
				}
			}
			if !found {
				t.Error("no event agent_logged")
			}
		})
	}
}

// A turn whose journal was written, and whose executor then fails without a record,
// leaves none that looks unfinished.
func TestRecordIsClosed(t *testing.T) {
	h := newHive(t)
	h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		header := turn.Header()
		if _, err := turn.Journal(swarm.JournalWrite{Header: &header, Entries: []swarm.Entry{{N: 1, Kind: swarm.EntryIntent, Call: "1"}}}); err != nil {
			t.Error(err)
		}
		panic("a bug")
	}
	if a := h.ask("x", task("t")); a.State != swarm.StateFailed {
		t.Errorf("%+v", a)
	}
	rec, err := h.store.Record(t.Context(), key("t"), 1)
	if err != nil || rec.End == nil || rec.End.Exit != "host" || len(rec.Entries) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A turn that was killed after it journaled goes on from its record when the
// task is reopened.
func TestKilledTurnKeepsItsRecord(t *testing.T) {
	h := newHive(t)
	begun := make(chan struct{})
	var again *swarm.PriorAttempt
	h.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Body != "x" {
			return script(ctx, turn)
		}
		if again = turn.PriorAttempt(); again != nil {
			return swarm.Outcome{Record: &swarm.Record{End: &swarm.TurnEnd{Exit: "ok"}}}
		}
		header := turn.Header()
		if _, err := turn.Journal(swarm.JournalWrite{Header: &header}); err != nil {
			t.Error(err)
		}
		close(begun)
		<-ctx.Done()
		if _, err := turn.Journal(swarm.JournalWrite{Entries: []swarm.Entry{{N: 1, Kind: swarm.EntryCall}}}); err == nil {
			t.Error("a killed turn writes to its journal")
		}
		return failed(ctx.Err())
	}
	h.mustPost("x", task("t"))
	<-begun
	if err := h.rt.CancelTask(t.Context(), key("t"), "alice"); err != nil {
		t.Fatal(err)
	}
	h.ask("y", task("t"))
	eventually(t, "the first turn runs again", func() bool { return len(h.record("t").Rows) == 0 })
	if again == nil || again.Header.Agent != "boss" {
		t.Errorf("%+v", again)
	}
}
