package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

func TestTextOnlyIsCorrectedThenSent(t *testing.T) {
	t.Parallel()
	user, agent := boss("hi"), worker("2+2")
	lone := worker("news")
	lone.Message.Type = skep.TypeBroadcast
	tests := []struct {
		name string
		in   skeptest.Input
		want string
	}{
		{"a user", user, "task_complete It is 4."},
		{"an agent", agent, "send_response boss Re: sum It is 4."},
		{"a broadcast", lone, "acknowledge_broadcast It is 4."},
	}
	for _, tt := range tests {
		out, asked := play(t, tt.in, say("Let me see."), say("Hm."), say(" It is 4.\n"))
		if out.Err != nil || did(out) != tt.want {
			t.Errorf("%s: %v, %s", tt.name, out.Err, did(out))
		}
		if end := last(asked[2]).Content; !strings.Contains(end, "::tool_call_error::") || strings.Contains(end, "Let me see") {
			t.Errorf("%s: the correction is %q", tt.name, end)
		}
	}
	user.Params = map[string]any{"corrections": 0}
	if out, _ := play(t, user, say("4")); did(out) != "task_complete 4" {
		t.Errorf("without corrections: %s", did(out))
	}
	if _, asked := play(t, boss("hi"), skep.ChatResponse{Text: "long", Finish: skep.FinishLength}, finish("4")); !strings.Contains(last(asked[1]).Content, "greatest length") {
		t.Errorf("told %q", last(asked[1]).Content)
	}
}

func TestTextOnWhatIsNoQuestion(t *testing.T) {
	t.Parallel()
	nothingComes := func(op skep.Op, req json.RawMessage) (any, error) {
		if op == skep.OpMail && strings.Contains(string(req), "await_message") {
			return nil, skep.Errorf(skep.Conflict, "nothing to wait for")
		}
		return nil, nil
	}
	params := map[string]any{"corrections": 0}
	in := boss("")
	in.Params, in.Message = params, fromAgent(skep.TypeResponse, "calc", "Re: sum", "4")
	if out, _ := play(t, in, say("Waiting for the analyst.")); did(out) != "await_message" || !slices.Equal(out.Notes, []string{"said: Waiting for the analyst."}) {
		t.Errorf("while more may come: %s, %q", did(out), out.Notes)
	}
	in.Answer = nothingComes
	if out, _ := play(t, in, say("It is 4.")); did(out) != "task_complete It is 4." {
		t.Errorf("when nothing comes: %s", did(out))
	}

	in = worker("")
	in.Params, in.Answer, in.Message = params, nothingComes, fromAgent(skep.TypeResponse, "helper", "Re: x", "4")
	in.History = past(
		fromAgent(skep.TypeRequest, "boss", "old", "1+1"), told{"send_response", `{"target":"boss"}`, "SUCCESS: message sent"},
		fromAgent(skep.TypeRequest, "boss", "sum", "2+2"))
	if out, _ := play(t, in, say("4")); did(out) != "send_response boss Re: sum 4" {
		t.Errorf("an agent that owes an answer: %v, %s", out.Err, did(out))
	}
	in.History = in.History[:3]
	if out, _ := play(t, in, say("4")); !errors.Is(out.Err, skep.Upstream) {
		t.Errorf("an agent that owes none: %v, %s", out.Err, did(out))
	}
	in = boss("")
	in.Params, in.Message = params, fromSystem(subjectLimit, "so far")
	if out, _ := play(t, in, say("all I have")); did(out) != "task_complete all I have" {
		t.Errorf("at the task's limit: %v, %s", out.Err, did(out))
	}
}

func TestRequireTool(t *testing.T) {
	t.Parallel()
	in := boss("hi")
	in.Params = map[string]any{"require_tool": true, "corrections": 1}
	out, asked := play(t, in, say("no"), say("no"))
	if asked[0].ToolChoice != "required" || !errors.Is(out.Err, skep.Upstream) || !strings.Contains(out.Err.Message, "called no tool") {
		t.Errorf("choice %q: %v", asked[0].ToolChoice, out.Err)
	}
	if out, _ := play(t, in, skep.ChatResponse{Finish: skep.FinishFiltered}, skep.ChatResponse{Finish: skep.FinishFiltered}); !strings.Contains(fmt.Sprint(out.Err), "held its answer back") {
		t.Errorf("held back: %v", out.Err)
	}
}

func TestLastRoundIsForced(t *testing.T) {
	t.Parallel()
	in := boss("hi")
	in.Params = map[string]any{"max_rounds": 2, "ops": []string{"kv_list"}}
	in.World = &skeptest.World{KV: skep.ScopeAgent}
	more := call("kv_list", `{}`)
	out, asked := play(t, in, more, finish("enough"))
	if asked[0].ToolChoice != "" || asked[1].ToolChoice != "task_complete" || did(out) != "task_complete enough" {
		t.Errorf("choices %q, %q: %s", asked[0].ToolChoice, asked[1].ToolChoice, did(out))
	}
	if out, _ := play(t, in, more, more); !errors.Is(out.Err, skep.Upstream) || !strings.Contains(out.Err.Message, "max_rounds = 2") {
		t.Errorf("a model that goes on: %v", out.Err)
	}
	send := call("send_request", `{"target":"calc","subject":"s","body":"b"}`, "kv_list", `{}`)
	if out, _ := play(t, in, send, more); out.Err != nil || did(out) != "send_request calc s b" {
		t.Errorf("one that has sent something: %v, %s", out.Err, did(out))
	}
	asker := worker("hi")
	asker.Params, asker.World = in.Params, &skeptest.World{KV: skep.ScopeAgent}
	if _, asked = play(t, asker, more, say("4")); asked[1].ToolChoice != "send_response" {
		t.Errorf("a worker's choice %q", asked[1].ToolChoice)
	}
}

// A model that repeats a refused call is told of in the end with that call.
func TestLastRefusalIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"teleport", `{}`, `its last call that failed was teleport: there is no tool "teleport"; the tools are `},
		{"kv_list", `{"all":1}`, "its last call that failed was kv_list: the arguments of kv_list are wrong: there is no all"},
		{strings.Repeat("x", 9000), `{}`, "its last call that failed was xxx"},
	} {
		in := boss("hi")
		in.Params = map[string]any{"max_rounds": 2, "ops": []string{"kv_list"}}
		out, _ := play(t, in, call(c.name, c.args), call(c.name, c.args))
		if text := fmt.Sprint(out.Err); !strings.Contains(text, c.want) || len(text) > 1<<10 {
			t.Errorf("%.20s: %v, want %q", c.name, out.Err, c.want)
		}
	}
	in := boss("hi")
	in.Params = map[string]any{"max_rounds": 2, "ops": []string{"kv_list"}}
	in.World = &skeptest.World{KV: skep.ScopeAgent}
	if out, _ := play(t, in, call("kv_list", `{}`), call("kv_list", `{}`)); strings.Contains(fmt.Sprint(out.Err), "that failed") {
		t.Errorf("without a refusal: %v", out.Err)
	}
}

func TestTaskLimitForcesCompletion(t *testing.T) {
	t.Parallel()
	in := boss("")
	in.Message = fromSystem(subjectLimit, "transcript")
	out, asked := play(t, in, finish("this far"))
	if asked[0].ToolChoice != "task_complete" || did(out) != "task_complete this far" {
		t.Errorf("choice %q: %s", asked[0].ToolChoice, did(out))
	}
}

func TestHandledComplaintCostsNoQuestion(t *testing.T) {
	t.Parallel()
	in := boss("")
	in.Message = fromSystem("::invalid_recipient::", `agent "boss" may not write to "nobody"`)
	refused := told{"send_request", `{"target":"nobody"}`, `ERROR: agent "boss" may not write to "nobody"`}
	in.History = past(fromUser("q"), refused, told{"send_request", `{"target":"calc"}`, "SUCCESS: message sent"})
	for i := range in.History {
		in.History[i].Turn = 1
	}
	if out, _ := play(t, in); out.Err != nil || did(out) != "" {
		t.Errorf("made good: %v, %s", out.Err, did(out))
	}
	in.History[3].Turn, in.History[4].Turn = 2, 2
	if out, _ := play(t, in, finish("x")); did(out) != "task_complete x" {
		t.Errorf("made good in another turn: %s", did(out))
	}
	in.History = past(fromUser("q"), refused, told{"await_message", `{}`, "SUCCESS: waiting for a new message"})
	if out, _ := play(t, in, finish("x")); did(out) != "task_complete x" {
		t.Errorf("not made good: %s", did(out))
	}
}
