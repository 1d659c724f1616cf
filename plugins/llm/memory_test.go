package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// long is a history of n pieces of mail of about 400 tokens each, behind the first.
func long(n int) []skep.Entry {
	parts := []any{fromUser("the very first words")}
	for i := range n {
		parts = append(parts, fromAgent(skep.TypeResponse, "calc", "s", fmt.Sprintf("mail %d %s", i, strings.Repeat("x", 1200))),
			told{"send_request", `{"target":"calc"}`, "SUCCESS: message sent"})
	}
	return past(parts...)
}

func small(extra string) json.RawMessage {
	return json.RawMessage(`{"max_history_tokens":2000` + extra + `}`)
}

func TestOldHistoryIsSummedUp(t *testing.T) {
	t.Parallel()
	in := boss("go on")
	in.History, in.Params = long(10), small(``)
	out, asked := play(t, in, say("calc was asked"), say("and again"), say("boss has asked calc often"), finish("x"))
	if out.Err != nil || len(asked[0].Tools) != 0 || !strings.Contains(last(asked[0]).Content, "mail 0 ") {
		t.Fatalf("%v; asked to sum up %.200q", out.Err, last(asked[0]).Content)
	}
	if more := last(asked[1]).Content; !strings.HasPrefix(more, "<summary>\ncalc was asked\n</summary>") || strings.Contains(more, "mail 0 ") {
		t.Errorf("what did not fit is summed up from %.200q", more)
	}
	asked = asked[2:]
	text := asked[1].Messages[1].Content
	for _, want := range []string{"the very first words", "<summary>\nboss has asked calc often\n</summary>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the prompt", want)
		}
	}
	var all strings.Builder
	for _, m := range asked[1].Messages {
		all.WriteString(m.Content)
		if m.Role == skep.RoleTool && m.Content == "no result" {
			t.Error("a call lost its result")
		}
	}
	if strings.Contains(all.String(), "mail 0 ") || !strings.Contains(all.String(), "mail 9 ") {
		t.Error("the wrong part was summed up")
	}
	if len(all.String()) > 3*2000+4000 {
		t.Errorf("the prompt still has %d bytes", len(all.String()))
	}

	// The next turn has it in its state, and asks for no other summary.
	in.State = out.State
	out, asked = play(t, in, finish("y"))
	if out.Err != nil || !strings.Contains(asked[0].Messages[1].Content, "boss has asked calc often") {
		t.Errorf("%v: %.300s", out.Err, asked[0].Messages[1].Content)
	}
}

func TestOldHistoryIsLeftOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		params  json.RawMessage
		answers []any
	}{
		{"as the operator wants", small(`,"summary_model":""`), []any{finish("x")}},
		{"without a budget", small(``), []any{&skep.Error{Code: skep.Limit, Message: "used up"}, finish("x")}},
		{"without a summary", small(``), []any{say(" "), finish("x")}},
	}
	for _, tt := range tests {
		in := boss("go on")
		in.History, in.Params = long(10), tt.params
		out, asked := play(t, in, tt.answers...)
		text := asked[len(asked)-1].Messages[1].Content
		if out.Err != nil || !strings.Contains(text, "records of earlier turns are left out here") || !strings.Contains(text, "the very first words") {
			t.Errorf("%s: %v: %.300s", tt.name, out.Err, text)
		}
	}
	in := boss("go on")
	in.History, in.Params = long(10), small(`,"summary_model":"cheap"`)
	if _, asked := play(t, in, say("s"), say("s"), say("s"), finish("x")); asked[2].Model != "cheap" || asked[3].Model != "default" {
		t.Errorf("asked %s, then %s", asked[2].Model, asked[3].Model)
	}
	if out, _ := play(t, in, skep.Cancelled); out.Err != nil {
		t.Errorf("called off while summing up: %v", out.Err)
	}
}

// TestManyEntries has a history that is short and of many parts, one of which could
// not be read.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	parts := []any{fromUser("q"), told{"", `{}`, "ERROR: no name"}}
	for range 600 {
		parts = append(parts, told{"help", `{}`, "h"})
	}
	in := boss("go on")
	in.History, in.Params = past(parts...), json.RawMessage(`{"max_history_tokens":1000000,"summary_model":""}`)
	_, asked := play(t, in, finish("x"))
	if n := len(asked[0].Messages); n > 510 || n < 490 {
		t.Errorf("%d messages", n)
	}
	in.History = in.History[:5]
	_, asked = play(t, in, finish("x"))
	for _, m := range asked[0].Messages {
		if len(m.ToolCalls) > 0 && m.ToolCalls[0].Name == "" {
			t.Error("a call without a name is shown")
		}
	}
}

func TestStateFits(t *testing.T) {
	t.Parallel()
	in := boss("go on")
	in.Params = small(``)
	first := fromUser(strings.Repeat("&<\x01", 20_000))
	first.Subject = first.Body
	in.History = past(first, "a note")
	out, _ := play(t, in, say(strings.Repeat("\\\"\n", 9000)), finish("x"))
	if out.Err != nil || len(out.State) > 64<<10 || len(out.State) < 8<<10 {
		t.Errorf("%v: a state of %d bytes", out.Err, len(out.State))
	}
}

// TestHistoryIsPaged has a host that shows the newest entries only, as one does
// whose history is long.
func TestHistoryIsPaged(t *testing.T) {
	t.Parallel()
	whole := long(30)
	for _, through := range []int64{0, 40} {
		in := boss("go on")
		in.History, in.State = whole[80:], memory{Through: through}
		in.Answer = func(op skep.Op, req json.RawMessage) (any, error) {
			if op != skep.OpHistory {
				return nil, nil
			}
			return page(t, whole, req), nil
		}
		var got []skep.Entry
		out := skeptest.Run(turnFunc(func(tn *skep.Turn) (err error) {
			got, err = history(tn, through)
			return err
		}), in)
		if out.Err != nil || len(got) != len(whole)-int(through) || got[0].Seq != through+1 || got[len(got)-1].Seq != int64(len(whole)) {
			t.Errorf("after %d: %v, %d entries", through, out.Err, len(got))
		}
	}
	in := boss("go on")
	in.History = whole[80:]
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpHistory {
			return nil, skep.Errorf(skep.Limit, "host_bytes")
		}
		return nil, nil
	}
	if out, _ := play(t, in); !errors.Is(out.Err, skep.Limit) {
		t.Errorf("a page that is refused: %v", out.Err)
	}
}

type turnFunc func(t *skep.Turn) error

func (f turnFunc) Turn(t *skep.Turn) error { return f(t) }

// page answers op history, 20 notes at a time.
func page(t *testing.T, whole []skep.Entry, req json.RawMessage) any {
	t.Helper()
	var ask struct{ After int64 }
	if err := json.Unmarshal(req, &ask); err != nil {
		t.Fatal(err)
	}
	var entries []map[string]any
	for _, e := range whole[ask.After:min(ask.After+20, int64(len(whole)))] {
		entries = append(entries, map[string]any{"seq": e.Seq, "turn": e.Turn, "time": "2026-01-01T00:00:00Z", "kind": "note", "note": "n"})
	}
	answer := map[string]any{"entries": entries}
	if next := ask.After + 20; next < int64(len(whole)) {
		answer["next"] = next
	}
	return answer
}

func TestResultsOfTheTurnAreTrimmed(t *testing.T) {
	t.Parallel()
	in := boss("hi")
	in.Params = small(`,"ops":["kv_get"]`)
	in.World = &skeptest.World{KV: skep.ScopeAgent}
	in.World.Values(skep.ScopeAgent, in)["a"] = strings.Repeat("v", 4000)
	get := call("kv_get", `{"key":"a"}`)
	_, asked := play(t, in, get, get, get, finish("x"))
	got := results(asked[3])
	if len(got) != 3 || got[0] != leftOut || got[2] == leftOut {
		t.Errorf("results %.60q", got)
	}
}

// TestTooLongForTheModel has a model that takes less than the params say.
func TestTooLongForTheModel(t *testing.T) {
	t.Parallel()
	tooLong := &skep.Error{Code: skep.Limit, Reason: "too_long", Message: "the conversation is too long"}
	in := boss("go on")
	in.History = long(10)
	in.Params = json.RawMessage(`{"max_history_tokens":8000,"summary_model":""}`)
	out, asked := play(t, in, tooLong, finish("x"))
	if out.Err != nil || len(asked[1].Messages) >= len(asked[0].Messages) || did(out) != "task_complete x" {
		t.Errorf("%v: %d messages, then %d", out.Err, len(asked[0].Messages), len(asked[1].Messages))
	}
	in.History = nil
	if out, _ := play(t, in, tooLong); !errors.Is(out.Err, skep.Limit) {
		t.Errorf("with nothing to leave out: %v", out.Err)
	}
}
