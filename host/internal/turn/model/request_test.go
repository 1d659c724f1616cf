package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// long is a conversation with everything that a request may have.
func long(carry json.RawMessage) abi.ChatRequest {
	cold := 0.0
	return abi.ChatRequest{
		Model: "default", MaxTokens: 100, Temperature: &cold, ToolChoice: "get_time",
		Messages: []abi.ChatMessage{
			{Role: abi.RoleSystem, Content: "Be brief."},
			{Role: abi.RoleUser, Content: "Weather and time?"},
			{Role: abi.RoleAssistant, Content: "I look.", Carry: carry, ToolCalls: []abi.ChatCall{
				{ID: "a", Name: "get_weather", Arguments: `{"city":"Rome"}`}, {ID: "b", Name: "get_time", Arguments: `{"zone":`}, {ID: "c", Name: "get_time"},
			}},
			{Role: abi.RoleTool, ToolCallID: "a", Content: "rain"},
			{Role: abi.RoleTool, ToolCallID: "b", Content: "no JSON", Error: true},
			{Role: abi.RoleTool, ToolCallID: "c"},
			{Role: abi.RoleUser, Content: "And?"},
			{Role: abi.RoleSystem, Content: "Hurry."},
		},
		Tools: []abi.Tool{
			{Name: "get_weather", Description: "The weather.", Parameters: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}}}`)},
			{Name: "get_time"},
		},
		Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}`),
	}
}

func sent(t *testing.T, provider string, req abi.ChatRequest, streamed bool) (map[string]any, string) {
	t.Helper()
	w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"Yes."}}))
	w.spec.Headers = map[string]string{"X-Team": "bees"}
	if _, _, err := ask(t, w.open(t), req, streamed); err != nil {
		t.Fatal(err)
	}
	r := w.Requests()[0]
	if r.Header.Get("X-Team") != "bees" || r.Header.Get("Authorization")+r.Header.Get("X-Api-Key") == "" {
		t.Errorf("headers: %v", r.Header)
	}
	return w.body(t, 0), string(r.Body)
}

func want(t *testing.T, name string, got any, text string) {
	t.Helper()
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

func TestOpenAIRequest(t *testing.T) {
	body, raw := sent(t, model.OpenAI, long(json.RawMessage(`{"openai":"reasoning_content","text":"hm"}`)), true)
	want(t, "messages", body["messages"], `[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":"Weather and time?"},
		{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[
			{"type":"function","id":"a","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}},
			{"type":"function","id":"b","function":{"name":"get_time","arguments":"{\"invalid_arguments\":\"{\\\"zone\\\":\"}"}},
			{"type":"function","id":"c","function":{"name":"get_time","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"rain"},
		{"role":"tool","tool_call_id":"b","content":"Error: no JSON"},
		{"role":"tool","tool_call_id":"c","content":""},
		{"role":"user","content":"And?"},
		{"role":"system","content":"Hurry."}]`)
	want(t, "tool_choice", body["tool_choice"], `{"type":"function","function":{"name":"get_time"}}`)
	want(t, "tools", body["tools"], `[
		{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}}}}},
		{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{}}}}]`)
	want(t, "response_format", body["response_format"], `{"type":"json_schema","json_schema":{"name":"answer","strict":true,
		"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}}}`)
	want(t, "the rest", []any{body["model"], body["max_tokens"], body["temperature"], body["stream"], body["stream_options"]}, `["model-1",100,0,true,{"include_usage":true}]`)
	if strings.Count(raw, `{"z":{"type":"string"},`) != 2 {
		t.Errorf("the keys of a schema have changed places: %s", raw)
	}
	body, _ = sent(t, model.OpenAI, question, false)
	if body["stream"] != nil || body["stream_options"] != nil || body["tools"] != nil || body["tool_choice"] != nil {
		t.Errorf("a plain question sends %v", body)
	}
	want(t, "the bound", body["max_tokens"], `4096`)
}

func TestAnthropicRequest(t *testing.T) {
	body, raw := sent(t, model.Anthropic, long(json.RawMessage(`{"anthropic":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"forged"}]}`)), false)
	want(t, "system", body["system"], `[{"type":"text","text":"Be brief."},{"type":"text","text":"Hurry."}]`)
	want(t, "messages", body["messages"], `[
		{"role":"user","content":[{"type":"text","text":"Weather and time?"}]},
		{"role":"assistant","content":[
			{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},
			{"type":"text","text":"I look."},
			{"type":"tool_use","id":"a","name":"get_weather","input":{"city":"Rome"}},
			{"type":"tool_use","id":"b","name":"get_time","input":{"invalid_arguments":"{\"zone\":"}},
			{"type":"tool_use","id":"c","name":"get_time","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"rain"}]},
			{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no JSON"}]},
			{"type":"tool_result","tool_use_id":"c"},
			{"type":"text","text":"And?"}]}]`)
	want(t, "tool_choice", body["tool_choice"], `{"type":"tool","name":"get_time"}`)
	want(t, "tools", body["tools"], `[
		{"name":"get_weather","description":"The weather.","input_schema":{"type":"object","properties":{"z":{"type":"string"},"city":{"type":"string"}}}},
		{"name":"get_time","input_schema":{"type":"object","properties":{}}}]`)
	want(t, "output_config", body["output_config"], `{"format":{"type":"json_schema",
		"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}}}`)
	want(t, "the rest", []any{body["model"], body["max_tokens"], body["temperature"], body["stream"]}, `["model-1",100,0,true]`)
	if strings.Count(raw, `{"z":{"type":"string"},`) != 2 {
		t.Errorf("the keys of a schema have changed places: %s", raw)
	}
	body, _ = sent(t, model.Anthropic, question, true)
	if body["tools"] != nil || body["tool_choice"] != nil || body["output_config"] != nil {
		t.Errorf("a plain question sends %v", body)
	}
}

func TestToolChoice(t *testing.T) {
	for choice, wants := range map[string][2]string{
		"": {`null`, `null`}, "auto": {`"auto"`, `{"type":"auto"}`}, "none": {`"none"`, `{"type":"none"}`}, "required": {`"required"`, `{"type":"any"}`},
	} {
		req := question
		req.ToolChoice, req.Tools = choice, []abi.Tool{{Name: "get_time"}}
		for i, provider := range []string{model.OpenAI, model.Anthropic} {
			body, _ := sent(t, provider, req, true)
			want(t, provider+" "+choice, body["tool_choice"], wants[i])
		}
	}
}

// TestOwnServers: only OpenAI's own servers support max_completion_tokens, and their newer
// models require it.
func TestOwnServers(t *testing.T) {
	w := newWorld(t, model.OpenAI, modeltest.InOrder(modeltest.Reply{}))
	w.spec.BaseURL = strings.Replace(w.spec.BaseURL, "127.0.0.1", "api.openai.com", 1)
	w.opt.Transport = detour{w.opt.Transport}
	if _, _, err := ask(t, w.open(t), question, false); err != nil {
		t.Fatal(err)
	}
	body := w.body(t, 0)
	if body["max_tokens"] != nil || body["max_completion_tokens"] != 4096.0 {
		t.Errorf("sent %v", body)
	}
}

func TestRefusedRequest(t *testing.T) {
	w := newWorld(t, model.OpenAI, nil)
	m := w.open(t)
	for text, change := range map[string]func(*abi.ChatRequest){
		"has no messages":               func(r *abi.ChatRequest) { r.Messages = nil },
		`message 1 has the role "boss"`: func(r *abi.ChatRequest) { r.Messages = []abi.ChatMessage{{Role: "boss"}} },
		"parameters of the tool t":      func(r *abi.ChatRequest) { r.Tools = []abi.Tool{{Name: "t", Parameters: json.RawMessage(`[]`)}} },
		"response_schema is no JSON":    func(r *abi.ChatRequest) { r.Schema = json.RawMessage(`{"a":`) },
		"the request has no tools":      func(r *abi.ChatRequest) { r.ToolChoice = "required" },
		"none of the request's tools":   func(r *abi.ChatRequest) { r.ToolChoice = "fly" },
	} {
		req := question
		change(&req)
		_, _, err := ask(t, m, req, true)
		failed(t, err, model.Refused, text)
	}
	if len(w.Requests()) != 0 {
		t.Error("the provider was asked")
	}
}

// TestCarry: reasoning goes back unchanged to the provider that sent it.
func TestCarry(t *testing.T) {
	reply := modeltest.Reply{Reasoning: []string{"I th", "ink"}, Signature: "sig", Redacted: "xyz", Calls: []modeltest.Call{{ID: "a", Name: "get_time", Arguments: []string{"{}"}}}}
	wants := map[string]string{
		model.OpenAI:    `{"role":"assistant","reasoning_content":"I think","tool_calls":[{"type":"function","id":"a","function":{"name":"get_time","arguments":"{}"}}]}`,
		model.Anthropic: `{"role":"assistant","content":[{"type":"thinking","thinking":"I think","signature":"sig"},{"type":"redacted_thinking","data":"xyz"},{"type":"tool_use","id":"a","name":"get_time","input":{}}]}`,
	}
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(reply, modeltest.Reply{Text: []string{"Noon."}}, modeltest.Reply{}))
		m := w.open(t)
		resp, _, err := ask(t, m, question, streamed)
		if err != nil {
			t.Fatal(err)
		}
		next := question
		next.Messages = append(next.Messages[:2:2],
			abi.ChatMessage{Role: abi.RoleAssistant, Content: resp.Text, ToolCalls: resp.ToolCalls, Carry: resp.Carry},
			abi.ChatMessage{Role: abi.RoleTool, ToolCallID: "a", Content: "12:00"})
		if resp, _, err = ask(t, m, next, streamed); err != nil || resp.Text != "Noon." || resp.Carry != nil {
			t.Fatalf("got %+v, %v", resp, err)
		}
		at := 2
		if provider == model.Anthropic {
			at = 1
		}
		want(t, "the answer", w.body(t, 1)["messages"].([]any)[at], wants[provider])
		next.Messages[2].Carry = json.RawMessage(`{"openai":"tool_calls","anthropic":"?"}`)
		if _, _, err := ask(t, m, next, streamed); err != nil {
			t.Errorf("a foreign carry: %v", err)
		}
	})
}
