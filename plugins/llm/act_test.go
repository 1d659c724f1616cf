package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestMailAloneEndsTheTurn(t *testing.T) {
	t.Parallel()
	out, asked := play(t, boss("What is 2+2?"), call(
		"send_request", `{"target":"calc","subject":"sum","body":"2+2"}`,
		"await_message", `{}`,
	))
	if out.Err != nil || did(out) != "send_request calc sum 2+2; await_message" || len(asked) != 1 {
		t.Errorf("%v: %s after %d questions", out.Err, did(out), len(asked))
	}
}

// TestActionsAreReadAgain_G22 has an action that works and one that fails: the model
// sees which is which, and no success is told of the other.
func TestActionsAreReadAgain_G22(t *testing.T) {
	t.Parallel()
	in := boss("Order tea.")
	in.Tools = []string{"stock", "order"}
	in.Answer = func(op skep.Op, req json.RawMessage) (any, error) {
		switch {
		case op != skep.OpAction:
			return nil, nil
		case strings.Contains(string(req), "stock"):
			return map[string]any{"tea": 3}, nil
		}
		return nil, skep.Errorf(skep.Upstream, "the shop is closed")
	}
	out, asked := play(t, in, call("stock", `{}`, "order", `{"what":"tea"}`), finish("closed"))
	if out.Err != nil || did(out) != "task_complete closed" {
		t.Errorf("%v: %s", out.Err, did(out))
	}
	want := []string{`{"tea":3}`, "! UPSTREAM: the shop is closed"}
	if got := results(asked[1]); !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	for _, c := range out.Calls {
		if c.Op == skep.OpAction && !c.Submitted {
			t.Error("the actions ran one after the other")
		}
	}
}

func TestTaskIsNotEndedBesideAFailure(t *testing.T) {
	t.Parallel()
	in := boss("Order tea.")
	in.Tools = []string{"order"}
	in.Answer = func(op skep.Op, _ json.RawMessage) (any, error) {
		if op == skep.OpAction {
			return nil, skep.Errorf(skep.Upstream, "closed")
		}
		return nil, nil
	}
	out, asked := play(t, in, call("order", `{}`, "task_complete", `{"finish_message":"ordered"}`), finish("not ordered"))
	if did(out) != "task_complete not ordered" {
		t.Errorf("%v: %s", out.Err, did(out))
	}
	if got := results(asked[1])[1]; !strings.HasPrefix(got, "! not done") {
		t.Errorf("told %q", got)
	}
}

func TestFaultsOfTheModelComeBackToIt(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, args, want string }{
		{"fly", `{}`, `there is no tool "fly"; the tools are send_request`},
		{"task_complete", `{"finish`, "the arguments of task_complete are no JSON"},
		{"task_complete", `[1]`, "must be one JSON object"},
		{"kv_get", `{}`, "key is missing"},
		{"kv_get", `{"key":1}`, "key must be of type string"},
		{"kv_get", `{"key":"a","scope":"world"}`, `scope must be one of ["task","agent","instance"]`},
		{"kv_get", `{"key":"a","colour":"red"}`, "there is no colour"},
	}
	for _, tt := range tests {
		in := boss("hello")
		in.Params = map[string]any{"ops": []string{"kv_get"}}
		out, asked := play(t, in, call(tt.name, tt.args), finish("well"))
		if got := results(asked[1])[0]; !strings.HasPrefix(got, "! ") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: told %q, want %q", tt.name, tt.args, got, tt.want)
		}
		if len(out.Calls) == 0 || out.Err != nil || did(out) != "task_complete well" {
			t.Errorf("%s %s: %v, %s", tt.name, tt.args, out.Err, did(out))
		}
		if slices.ContainsFunc(out.Calls, func(c skeptest.Call) bool { return c.Op == skep.OpKVGet }) {
			t.Errorf("%s %s reached the host", tt.name, tt.args)
		}
	}
}

func TestTooManyCallsAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	var calls []string
	for range 40 {
		calls = append(calls, "kv_put", `{"key":"a","value":"b"}`)
	}
	in := boss("hello")
	in.Params, in.World = map[string]any{"ops": []string{"kv_put"}}, &skeptest.World{KV: skep.ScopeAgent}
	_, asked := play(t, in, call(calls...), finish("well"))
	got := results(asked[1])
	if len(got) != 40 || got[31] != "{}" || !strings.HasPrefix(got[32], "! not made") {
		t.Errorf("%d results: %q", len(got), got)
	}
}

func TestRefusalOfTheHostIsRead(t *testing.T) {
	t.Parallel()
	in := boss("hello")
	in.Answer = func(op skep.Op, req json.RawMessage) (any, error) {
		if op == skep.OpMail && strings.Contains(string(req), "await_message") {
			return nil, skep.Errorf(skep.Conflict, "nothing to wait for")
		}
		return nil, nil
	}
	out, asked := play(t, in, call("await_message", `{}`), finish("done"))
	if did(out) != "task_complete done" || results(asked[1])[0] != "! CONFLICT: nothing to wait for" {
		t.Errorf("%v: %s; told %q", out.Err, did(out), results(asked[1]))
	}
}

func TestHelpIsRead(t *testing.T) {
	t.Parallel()
	_, asked := play(t, boss("hello"), call("help", `{}`), finish("done"))
	if got := results(asked[1])[0]; !strings.Contains(got, "SUMMARY") {
		t.Errorf("told %q", got)
	}
}

func TestOpsAsTools(t *testing.T) {
	t.Parallel()
	in := boss("remember")
	in.Params = map[string]any{"ops": []string{"kv_put", "kv_get", "http_fetch", "timer_set"}}
	in.World = &skeptest.World{KV: skep.ScopeAgent, HTTP: func(skep.FetchRequest) (skep.FetchResponse, error) {
		return skep.FetchResponse{Status: 200, Body: []byte(strings.Repeat("x", 50<<10))}, nil
	}}
	out, asked := play(t, in,
		call("kv_put", `{"key":"a","value":"b"}`, "timer_set", `{"after":"1m","body":"wake"}`),
		call("kv_get", `{"key":"a"}`, "kv_get", `{"key":"z"}`, "http_fetch", `{"method":"GET","url":"https://x.example"}`),
		finish("done"))
	got := results(asked[2])[2:]
	if out.Err != nil || got[0] != `{"value":"b"}` || !strings.HasPrefix(got[1], "! NOT_FOUND") {
		t.Errorf("%v: results %.80q", out.Err, got)
	}
	if !strings.HasSuffix(got[2], "more bytes are left out here]") || len(got[2]) > maxResult+100 {
		t.Errorf("a result of %d bytes ends %q", len(got[2]), got[2][len(got[2])-40:])
	}
	if len(in.World.Timers()) != 1 {
		t.Error("no timer")
	}
	if len(out.Notes) != 5 || !strings.HasPrefix(out.Notes[2], `called kv_get {"key":"a"}`) {
		t.Errorf("notes %.60q", out.Notes)
	}
}

func TestIDsOfCallsAreToldApart(t *testing.T) {
	t.Parallel()
	in := boss("hello")
	in.Params = map[string]any{"ops": []string{"kv_get"}}
	rsp := call("kv_get", `{"key":"a"}`, "kv_get", `{"key":"b"}`, "kv_get", `{"key":"c"}`)
	rsp.ToolCalls[1].ID, rsp.ToolCalls[2].ID = rsp.ToolCalls[0].ID, ""
	rsp.Carry = json.RawMessage(`{"signature":"s"}`)
	_, asked := play(t, in, rsp, finish("x"))
	var ids []string
	for _, m := range asked[1].Messages {
		for _, c := range m.ToolCalls {
			ids = append(ids, c.ID)
			if string(m.Carry) != `{"signature":"s"}` {
				t.Errorf("carried %s", m.Carry)
			}
		}
		if m.Role == skep.RoleTool {
			ids = append(ids, m.ToolCallID)
		}
	}
	if len(ids) != 6 || !slices.Equal(ids[:3], ids[3:]) || ids[0] == ids[1] || ids[1] == ids[2] || slices.Contains(ids, "") {
		t.Errorf("ids %q", ids)
	}
}

// TestGarbledCallsAreNotRepeated has names and arguments that some providers would
// refuse the whole conversation for.
func TestGarbledCallsAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, asked := play(t, boss("hello"), call("functions.help now", `{"get`, "", `[]`), finish("x"))
	for _, m := range asked[1].Messages {
		for i, c := range m.ToolCalls {
			if want := []string{"functions_help_now", "unnamed"}[i]; c.Name != want || c.Arguments != "{}" {
				t.Errorf("shown again: %s %s", c.Name, c.Arguments)
			}
		}
	}
	if got := results(asked[1]); len(got) != 2 || !strings.Contains(got[0], `there is no tool "functions.help now"`) {
		t.Errorf("told %q", got)
	}
	in := boss("hello")
	in.History = past(fromUser("q"), told{"help", `{}`, "x"})
	in.History[1].Call.ID, in.History[2].Result.ID = "t1.1", "t1.1"
	_, asked = play(t, in, finish("x"))
	if id := asked[0].Messages[3].ToolCallID; id != "t1_1" {
		t.Errorf("an id of the history is shown as %q", id)
	}
}
