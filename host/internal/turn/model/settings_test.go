package model_test

import (
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// wrote is the request of a model with these settings.
func wrote(t *testing.T, provider string, set func(*model.Spec), req abi.ChatRequest) map[string]any {
	t.Helper()
	w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"Yes."}}))
	set(&w.spec)
	if _, _, err := ask(t, w.open(t), req, true); err != nil {
		t.Fatal(err)
	}
	return w.body(t, 0)
}

// TestReasoning: the effort of reasoning is sent in each provider's format, unless the
// provider would refuse the whole request for it.
func TestReasoning(t *testing.T) {
	cold := 0.0
	tools := []abi.Tool{{Name: "look"}}
	think := func(s *model.Spec) { s.Reasoning = "low" }
	body := wrote(t, model.OpenAI, think, question)
	want(t, "openai", body["reasoning_effort"], `"low"`)
	for name, c := range map[string]struct {
		change func(*abi.ChatRequest)
		want   string
	}{
		"plain":           {func(*abi.ChatRequest) {}, `{"type":"adaptive","display":"summarized"}`},
		"tools":           {func(r *abi.ChatRequest) { r.Tools = tools }, `{"type":"adaptive","display":"summarized"}`},
		"free choice":     {func(r *abi.ChatRequest) { r.Tools, r.ToolChoice = tools, "auto" }, `{"type":"adaptive","display":"summarized"}`},
		"a forced tool":   {func(r *abi.ChatRequest) { r.Tools, r.ToolChoice = tools, "look" }, `null`},
		"any forced tool": {func(r *abi.ChatRequest) { r.Tools, r.ToolChoice = tools, "required" }, `null`},
		"a temperature":   {func(r *abi.ChatRequest) { r.Temperature = &cold }, `null`},
	} {
		req := question
		c.change(&req)
		body := wrote(t, model.Anthropic, think, req)
		want(t, name, body["thinking"], c.want)
		want(t, name, body["output_config"], `{"effort":"low"}`)
	}
	for _, provider := range []string{model.OpenAI, model.Anthropic} {
		body := wrote(t, provider, func(*model.Spec) {}, question)
		for _, key := range []string{"reasoning_effort", "thinking", "output_config"} {
			if body[key] != nil {
				t.Errorf("%s unasked: %s is %v", provider, key, body[key])
			}
		}
	}
}

// TestCache: the prefix of the next call is marked, in two places at most.
func TestCache(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	user := []abi.ChatMessage{{Role: abi.RoleUser, Content: "Go on?"}}
	on := func(s *model.Spec) { s.Cache = true }
	body := wrote(t, model.Anthropic, on, long(nil))
	want(t, "system", body["system"], `[{"type":"text","text":"Be brief."},{"type":"text","text":"Hurry.",`+mark+`}]`)
	turns, _ := body["messages"].([]any)
	last, _ := turns[len(turns)-1].(map[string]any)
	blocks, _ := last["content"].([]any)
	want(t, "the last block", blocks[len(blocks)-1], `{"type":"text","text":"And?",`+mark+`}`)

	body = wrote(t, model.Anthropic, on, abi.ChatRequest{Messages: user, Tools: []abi.Tool{{Name: "a"}, {Name: "b"}}})
	tools, _ := body["tools"].([]any)
	want(t, "the last tool", tools[1], `{"name":"b","input_schema":{"type":"object","properties":{}},`+mark+`}`)

	// Reasoning cannot be marked; the block before it is.
	carried := abi.ChatRequest{Messages: append(user, abi.ChatMessage{Role: abi.RoleAssistant, Carry: []byte(`{"anthropic":[{"type":"thinking","thinking":"hm","signature":"s"}]}`)})}
	body = wrote(t, model.Anthropic, on, carried)
	want(t, "reasoning at the end", body["messages"], `[{"role":"user","content":[{"type":"text","text":"Go on?",`+mark+`}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}]`)

	for provider, set := range map[string]func(*model.Spec){model.OpenAI: on, model.Anthropic: func(*model.Spec) {}} {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"Yes."}}))
		set(&w.spec)
		if _, _, err := ask(t, w.open(t), long(nil), true); err != nil || strings.Contains(string(w.Requests()[0].Body), "cache_control") {
			t.Errorf("%s marks something, %v", provider, err)
		}
	}
}

// TestCacheIsPriced: tokens read from the cache, written to it and others have separate
// prices; the reservation uses the highest.
func TestCacheIsPriced(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		w := newWorld(t, model.Anthropic, modeltest.InOrder(modeltest.Reply{
			Text: []string{"Yes."}, Usage: &abi.ChatUsage{InputTokens: 1000, CachedTokens: 300, CacheWriteTokens: 200, OutputTokens: 10},
		}))
		w.spec.Cache, w.spec.Prices = true, model.Prices{InputPerMTok: 4e6, CachedPerMTok: 1e6, CacheWritePerMTok: 5e6, OutputPerMTok: 20e6}
		most := w.spec.Estimate(question)
		if want := most.InputTokens*5 + most.OutputTokens*20; most.MicroUSD != want || most.CacheWriteTokens != 0 {
			t.Errorf("reserved %+v, want %d", most, want)
		}
		resp, _, err := ask(t, w.open(t), question, streamed)
		want := abi.ChatUsage{InputTokens: 1000, CachedTokens: 300, CacheWriteTokens: 200, OutputTokens: 10, MicroUSD: 500*4 + 300 + 200*5 + 10*20}
		if err != nil || resp.Usage != want {
			t.Errorf("got %+v, %v, want %+v", resp.Usage, err, want)
		}
	}
}
