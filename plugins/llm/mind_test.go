package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestModelThatFails(t *testing.T) {
	t.Parallel()
	busy := &skep.Error{Code: skep.Unavailable, Message: "overloaded", RetryAfter: 3 * time.Second}
	gone := &skep.Error{Code: skep.Unavailable, Reason: "stream_lost", Message: "gone"}
	out, _ := play(t, boss("hi"), busy, gone, finish("at last"))
	if did(out) != "task_complete at last" || out.End.Sub(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) != 3*time.Second {
		t.Errorf("%v: %s at %v", out.Err, did(out), out.End)
	}
	broken := &skep.Error{Code: skep.Unavailable, Reason: "unavailable", Message: "the answer broke off"}
	garbled := &skep.Error{Code: skep.Upstream, Reason: "malformed", Message: "no JSON"}
	out, _ = play(t, boss("hi"), garbled, broken, broken, finish("at last"))
	if did(out) != "task_complete at last" || out.End.Sub(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) != 12*time.Second {
		t.Errorf("%v: %s at %v", out.Err, did(out), out.End)
	}
	tests := []struct {
		name    string
		answers []any
		want    skep.Code
	}{
		{"budget", []any{&skep.Error{Code: skep.Limit, Reason: "tokens", Message: "used up; the limit is [limits] task_tokens"}}, skep.Limit},
		{"no grant", []any{skep.Errorf(skep.Denied, "not granted")}, skep.Denied},
		{"down", []any{busy, busy, busy, busy}, skep.Unavailable},
		{"down for long", []any{&skep.Error{Code: skep.Unavailable, Message: "m", RetryAfter: time.Hour}}, skep.Unavailable},
		{"no key", []any{&skep.Error{Code: skep.Unavailable, Reason: "auth", Message: "the key was refused"}}, skep.Unavailable},
		{"in doubt", []any{&skep.Error{Code: skep.Unavailable, Reason: "in_doubt", Message: "not sent twice"}}, skep.Unavailable},
		{"garbled twice", []any{garbled, garbled}, skep.Upstream},
		{"unexpected", []any{&skep.Error{Code: skep.Upstream, Reason: "unexpected", Message: "no such prompt"}}, skep.Upstream},
	}
	for _, tt := range tests {
		out, _ := play(t, boss("hi"), tt.answers...)
		if !errors.Is(out.Err, tt.want) || !strings.HasPrefix(out.Err.Message, `model "default" gave no answer: `) ||
			strings.Contains(out.Err.Message, tt.want.String()+": ") || did(out) != "" {
			t.Errorf("%s: %v, %s", tt.name, out.Err, did(out))
		}
	}
}

func TestTurnThatIsCalledOffEndsWell(t *testing.T) {
	t.Parallel()
	if out, _ := play(t, boss("hi"), skep.Cancelled); out.Err != nil {
		t.Errorf("while the model answered: %v", out.Err)
	}
	in := boss("hi")
	in.Tools = []string{"ask_people"}
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpAction {
			return nil, skep.Cancelled
		}
		return nil, nil
	}
	if out, _ := play(t, in, call("ask_people", `{}`)); out.Err != nil {
		t.Errorf("while an action ran: %v", out.Err)
	}
}

func TestWhatFollowersSee(t *testing.T) {
	t.Parallel()
	in := boss("hi")
	in.Params = map[string]any{"ops": []string{"kv_list"}, "emit_reasoning": true}
	in.World = &skeptest.World{KV: skep.ScopeAgent}
	first := call("kv_list", `{}`)
	first.Text, first.Reasoning = strings.Repeat("word ", 4000), "think first"
	second := finish("x")
	second.Text = "Done."
	out, _ := play(t, in, first, second)
	var shown, thought strings.Builder
	kinds := map[string]int{}
	for _, e := range out.Emits {
		kinds[e.Kind]++
		switch e.Kind {
		case "chunk":
			shown.WriteString(e.Text)
		case "note":
			thought.WriteString(e.Text)
		}
	}
	if got, want := shown.String(), first.Text+"\n\nDone."; got != want || thought.String() != "think first" {
		t.Errorf("shown %d bytes, want %d; thoughts %q", len(got), len(want), thought.String())
	}
	if kinds["progress"] != 1 || kinds["chunk"] > 160 {
		t.Errorf("emitted %v", kinds)
	}
	in.Params = map[string]any{"ops": []string{"kv_list"}}
	out, _ = play(t, in, first, second)
	if slices.ContainsFunc(out.Emits, func(e skeptest.Emit) bool { return e.Kind == "note" }) {
		t.Error("the reasoning was shown")
	}
}

func TestNobodyCanFollow(t *testing.T) {
	t.Parallel()
	in := boss("hi")
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpEmit {
			return nil, skep.Errorf(skep.Limit, "enough")
		}
		return nil, nil
	}
	answer := finish("x")
	answer.Text = strings.Repeat("word ", 4000)
	out, _ := play(t, in, answer)
	if tried := len(out.Calls); out.Err != nil || did(out) != "task_complete x" || tried != 3 {
		t.Errorf("%v: %s after %d calls", out.Err, did(out), tried)
	}
}
