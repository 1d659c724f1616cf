package modeltest

import (
	"bytes"
	"encoding/json"
	"net/http"

	"skep/abi"
)

// Anthropic is a server of the Messages API, streamed or not. Its base URL has no path.
func Anthropic(answer Answer) *Server {
	return &Server{answer: answer, check: checkAnthropic, write: writeAnthropic, fail: func(f Failure) any {
		return object{"type": "error", "error": object{"type": f.Type, "message": f.Message}, "request_id": "req_1"}
	}}
}

type anthropicRequest struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Stream    bool   `json:"stream"`
	Thinking  struct {
		Type string `json:"type"`
	} `json:"thinking"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Temperature *float64 `json:"temperature"`
	Messages    []struct {
		Role    string `json:"role"`
		Content []struct {
			Type      string          `json:"type"`
			Text      string          `json:"text"`
			ID        string          `json:"id"`
			ToolUseID string          `json:"tool_use_id"`
			Input     json.RawMessage `json:"input"`
		} `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string `json:"name"`
		InputSchema struct {
			Type string `json:"type"`
		} `json:"input_schema"`
	} `json:"tools"`
}

// checkAnthropic returns the error with which the real provider would refuse a request.
func checkAnthropic(r Request) string {
	var req anthropicRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return "the body is no JSON: " + err.Error()
	}
	switch {
	case r.Path != "/v1/messages":
		return "unknown path " + r.Path
	case r.Header.Get("Anthropic-Version") == "":
		return "anthropic-version: header is required"
	case req.Model == "" || req.MaxTokens < 1 || len(req.Messages) == 0:
		return "model, max_tokens and messages: field required"
	case req.Messages[0].Role != "user":
		return "messages: first message must use the \"user\" role"
	case req.Thinking.Type != "" && (req.Temperature != nil || req.ToolChoice.Type == "any" || req.ToolChoice.Type == "tool"):
		return "thinking may not be enabled with a temperature, or when tool_choice forces tool use"
	case bytes.Count(r.Body, []byte(`"cache_control":`)) > 4:
		return "a maximum of 4 blocks with cache_control may be provided"
	}
	for _, t := range req.Tools {
		if t.Name == "" || t.InputSchema.Type != "object" {
			return "tools: input_schema.type: Field required"
		}
	}
	return checkTurns(req)
}

// checkTurns finds results without a call, calls without a result, and misplaced blocks.
func checkTurns(req anthropicRequest) string {
	open := map[string]bool{}
	for i, m := range req.Messages {
		if i > 0 && m.Role == req.Messages[i-1].Role {
			return "messages: roles must alternate"
		}
		called := map[string]bool{}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				if b.Text == "" {
					return "messages: text content blocks must be non-empty"
				}
				if m.Role == "user" && len(open) > 0 {
					return "messages: tool_use ids were found without tool_result blocks immediately after"
				}
			case "tool_use":
				var input map[string]any
				if json.Unmarshal(b.Input, &input) != nil || input == nil {
					return "messages: tool_use.input: Input should be a valid dictionary"
				}
				called[b.ID] = true
			case "tool_result":
				if !open[b.ToolUseID] {
					return "messages: unexpected tool_use_id found in tool_result blocks"
				}
				delete(open, b.ToolUseID)
			}
		}
		if len(open) > 0 {
			return "messages: tool_use ids were found without tool_result blocks immediately after"
		}
		open = called
	}
	return ""
}

func writeAnthropic(w http.ResponseWriter, r *http.Request, asked Request, reply Reply) {
	var req anthropicRequest
	_ = json.Unmarshal(asked.Body, &req)
	if !req.Stream {
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e := &events{w: w, r: r, reply: reply}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "model": req.Model, "stop_reason": nil, "stop_sequence": nil}
	if u := reply.Usage; u != nil {
		message["usage"] = object{
			"input_tokens": u.InputTokens - u.CachedTokens - u.CacheWriteTokens, "cache_read_input_tokens": u.CachedTokens, "cache_creation_input_tokens": u.CacheWriteTokens,
			"output_tokens": 1, "service_tier": "standard",
		}
	}
	e.send("message_start", object{"type": "message_start", "message": message})
	e.send("ping", object{"type": "ping"})
	anthropicBlocks(e, reply)
	e.pause()
	if reply.Fail != nil {
		e.send("error", object{"type": "error", "error": object{"type": reply.Fail.Type, "message": reply.Fail.Message}})
		return
	}
	end := object{"type": "message_delta", "delta": object{"stop_reason": anthropicStop(reply), "stop_sequence": nil}}
	if u := reply.Usage; u != nil {
		end["usage"] = object{"output_tokens": u.OutputTokens, "output_tokens_details": object{"thinking_tokens": u.ReasoningTokens}}
	}
	e.send("message_delta", end)
	e.send("message_stop", object{"type": "message_stop"})
}

func anthropicBlocks(e *events, reply Reply) {
	index := 0
	block := func(start object, deltas ...object) {
		e.send("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start})
		for _, d := range deltas {
			e.send("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": d})
		}
		e.send("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	var deltas []object
	for _, p := range reply.Reasoning {
		deltas = append(deltas, object{"type": "thinking_delta", "thinking": p})
	}
	if deltas != nil {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, object{"type": "signature_delta", "signature": reply.Signature})...)
	}
	if reply.Redacted != "" {
		block(object{"type": "redacted_thinking", "data": reply.Redacted})
	}
	deltas = nil
	for _, p := range append(reply.Text, reply.Refusal) {
		if p != "" {
			deltas = append(deltas, object{"type": "text_delta", "text": p})
		}
	}
	if deltas != nil {
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range reply.Calls {
		deltas = []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range c.Arguments {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": p})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas...)
	}
}

func anthropicStop(reply Reply) string {
	switch {
	case reply.Finish == abi.FinishFiltered:
		return "refusal"
	case reply.Finish == abi.FinishLength:
		return "max_tokens"
	case len(reply.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}
