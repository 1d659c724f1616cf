package main

import (
	"encoding/json"

	skep "skep/sdk/go"
)

// Warm has encoding/json learn the types of a turn before the image is taken, so
// that no turn has to.
func (Thinker) Warm() error {
	call := skep.ChatCall{ID: "1", Name: "help", Arguments: `{"get_summary":true}`}
	conversation := talk{
		{Role: skep.RoleUser, Content: frame(&skep.Message{Type: skep.TypeRequest, Body: "hello"}, false)},
		{Role: skep.RoleAssistant, ToolCalls: []skep.ChatCall{call}, Carry: json.RawMessage(`{}`)},
	}
	warmth := 1.0
	raw, err := json.Marshal(skep.ChatRequest{
		Model: "default", Messages: conversation, Temperature: &warmth,
		Tools: []skep.ChatTool{{Name: "help", Parameters: json.RawMessage(paramsSchema)}},
	})
	if err != nil {
		return err
	}
	for _, into := range []struct {
		raw string
		v   any
	}{
		{string(raw), &skep.ChatRequest{}},
		{`{"end":{"tool_calls":[{"id":"1","name":"help","arguments":"{}"}],"usage":{"input_tokens":1}}}`, &skep.ChatPiece{}},
		{`{"system":"x","tools":{"exclude":["help"]},"ops":["kv_get"]}`, &params{}},
		{`{"through":1,"first":"x"}`, &memory{}},
		{paramsSchema, &schema{}},
	} {
		if err := json.Unmarshal([]byte(into.raw), into.v); err != nil {
			return err
		}
	}
	_, err = json.Marshal(memory{First: "x"})
	return err
}
