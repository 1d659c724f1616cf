package main

import (
	"bytes"
	"encoding/json"
	"strings"

	skep "skep/sdk/go"
)

// reply is what chat shows of an answer, in its order.
type reply struct {
	Text            string          `json:"text"`
	Reasoning       string          `json:"reasoning"`
	ToolCalls       []skep.ChatCall `json:"tool_calls"`
	Finish          string          `json:"finish"`
	InputTokens     int64           `json:"input_tokens"`
	CachedTokens    int64           `json:"cached_tokens"`
	OutputTokens    int64           `json:"output_tokens"`
	ReasoningTokens int64           `json:"reasoning_tokens"`
	MicroUSD        int64           `json:"micro_usd"`
	Carry           json.RawMessage `json:"carry"`
}

func replyText(r skep.ChatResponse) string {
	if r.ToolCalls == nil {
		r.ToolCalls = []skep.ChatCall{}
	}
	u := r.Usage
	return plain(reply{
		r.Text, r.Reasoning, r.ToolCalls, r.Finish, u.InputTokens, u.CachedTokens, u.OutputTokens, u.ReasoningTokens, u.MicroUSD, r.Carry,
	})
}

// plain is a value's JSON without the escapes for HTML.
func plain(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// chat asks a model and waits for the whole answer.
func chat(t *skep.Turn, raw json.RawMessage) string {
	var r skep.ChatRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return err.Error()
	}
	rsp, err := t.Chat(r)
	return text(replyText(rsp), err)
}

// chatStream tells the pieces of an answer as they come, and then all of it.
func chatStream(t *skep.Turn, raw json.RawMessage) string {
	var r skep.ChatRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		return err.Error()
	}
	var parts []string
	rsp, err := t.ChatStream(r, func(p skep.ChatPiece) error {
		if p.Reasoning != "" {
			parts = append(parts, "reasoning "+p.Reasoning)
		} else {
			parts = append(parts, "delta "+p.Delta)
		}
		return nil
	})
	return strings.Join(append(parts, text(replyText(rsp), err)), "; ")
}

// emitted is what became of something that was shown.
func emitted(status skep.EmitStatus, err error) string { return text(string(status), err) }
