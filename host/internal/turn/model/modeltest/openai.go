package modeltest

import (
	"encoding/json"
	"net/http"

	"skep/abi"
)

// OpenAI is a server of chat completions, streamed or not. Its base URL ends in /v1.
func OpenAI(answer Answer) *Server {
	return &Server{answer: answer, check: checkOpenAI, write: writeOpenAI, fail: func(f Failure) any {
		return object{"error": object{"message": f.Message, "type": f.Type, "param": nil, "code": orNil(f.Code)}}
	}}
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

type openaiRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role       string  `json:"role"`
		Content    *string `json:"content"`
		ToolCallID string  `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string                           `json:"id"`
			Type     string                           `json:"type"`
			Function struct{ Name, Arguments string } `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Stream        bool `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// checkOpenAI returns the error with which the real provider would refuse a request.
func checkOpenAI(r Request) string {
	var req openaiRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return "the body is no JSON: " + err.Error()
	}
	switch {
	case r.Path != "/v1/chat/completions":
		return "unknown path " + r.Path
	case req.Model == "" || len(req.Messages) == 0:
		return "you must provide a model and messages"
	case req.StreamOptions != nil && !req.Stream:
		return "stream_options is only allowed when stream is true"
	}
	open := map[string]bool{}
	for _, m := range req.Messages {
		if m.Role == "tool" && !open[m.ToolCallID] {
			return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
		}
		for _, c := range m.ToolCalls {
			if c.Type != "function" || c.ID == "" || c.Function.Name == "" {
				return "a tool call lacks its type, id or name"
			}
			open[c.ID] = true
		}
		if m.Content == nil && len(m.ToolCalls) == 0 {
			return "content is required"
		}
	}
	return ""
}

func writeOpenAI(w http.ResponseWriter, r *http.Request, asked Request, reply Reply) {
	var req openaiRequest
	_ = json.Unmarshal(asked.Body, &req)
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(completion(req.Model, reply))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e := &events{w: w, r: r, reply: reply}
	chunk := func(delta object, finish any) {
		e.send("", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": req.Model, "system_fingerprint": "fp_1", "usage": nil,
			"choices": []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, delta := range openaiDeltas(reply) {
		chunk(delta, nil)
	}
	e.pause()
	if reply.Fail != nil {
		e.send("", object{"error": object{"message": reply.Fail.Message, "type": reply.Fail.Type, "code": orNil(reply.Fail.Code), "param": nil}})
		return
	}
	chunk(object{}, openaiFinish(reply))
	if reply.Usage != nil && req.StreamOptions != nil && req.StreamOptions.IncludeUsage {
		e.send("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": req.Model, "choices": []any{}, "usage": openaiUsage(reply.Usage)})
	}
	e.send("", "[DONE]")
}

// openaiDeltas starts each call with its id and name, and interleaves the parts of the
// arguments.
func openaiDeltas(reply Reply) (out []object) {
	for _, p := range reply.Reasoning {
		out = append(out, object{"content": nil, "reasoning_content": p})
	}
	for _, p := range reply.Text {
		out = append(out, object{"content": p})
	}
	if reply.Refusal != "" {
		out = append(out, object{"refusal": reply.Refusal})
	}
	longest := 0
	for i, c := range reply.Calls {
		out = append(out, object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}})
		longest = max(longest, len(c.Arguments))
	}
	for n := range longest {
		for i, c := range reply.Calls {
			if n < len(c.Arguments) {
				out = append(out, object{"tool_calls": []any{object{"index": i, "function": object{"arguments": c.Arguments[n]}}}})
			}
		}
	}
	return out
}

func completion(model string, reply Reply) object {
	message := object{"role": "assistant", "content": joined(reply.Text), "refusal": orNil(reply.Refusal), "annotations": []any{}}
	if len(reply.Reasoning) > 0 {
		message["reasoning_content"] = joined(reply.Reasoning)
	}
	var calls []any
	for _, c := range reply.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": joined(c.Arguments)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	out := object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "system_fingerprint": "fp_1",
		"choices": []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": openaiFinish(reply)}},
	}
	if reply.Usage != nil {
		out["usage"] = openaiUsage(reply.Usage)
	}
	return out
}

func openaiFinish(reply Reply) string {
	switch {
	case reply.Finish == abi.FinishFiltered && reply.Refusal == "":
		return "content_filter"
	case reply.Finish == abi.FinishLength:
		return "length"
	case len(reply.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func openaiUsage(u *abi.ChatUsage) object {
	return object{
		"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens, "total_tokens": u.InputTokens + u.OutputTokens,
		"prompt_tokens_details":     object{"cached_tokens": u.CachedTokens, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": u.ReasoningTokens, "audio_tokens": 0},
	}
}
