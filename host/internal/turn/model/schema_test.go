package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/model"
)

// TestStrict: a schema is strict only if OpenAI supports that.
func TestStrict(t *testing.T) {
	for schema, strict := range map[string]bool{
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`:                                                     true,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"],"additionalProperties":false}`:                true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}},"required":["a"],"additionalProperties":false}`:    true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"string"}]}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"],"additionalProperties":false}`:                             false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                          false,
		`{"type":"object","properties":{"a":{"type":"string","format":"date"}},"required":["a"],"additionalProperties":false}`:             false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                 false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:    false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                          false,
		`{"$ref":"#/a"}`: false,
		strings.Repeat(`{"anyOf":[`, 10) + `{"type":"null"}` + strings.Repeat(`]}`, 10): false, // deeper than OpenAI takes
	} {
		req := question
		req.Schema = json.RawMessage(schema)
		body, _ := sent(t, model.OpenAI, req, true)
		format := body["response_format"].(map[string]any)["json_schema"].(map[string]any)
		if got := format["strict"] == true; got != strict {
			t.Errorf("%s: strict is %v", schema, got)
		}
	}
}

// TestDeepSchema: a schema is decoded once, not once for each level.
func TestDeepSchema(t *testing.T) {
	req := question
	req.Schema = json.RawMessage(strings.Repeat(`{"items":`, 5000) + `{"title":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat("}", 5000))
	body, _ := sent(t, model.OpenAI, req, true)
	if format := body["response_format"].(map[string]any)["json_schema"].(map[string]any); format["strict"] != nil {
		t.Errorf("strict is %v", format["strict"])
	}
}

// TestEmptyMessages: Anthropic refuses empty text.
func TestEmptyMessages(t *testing.T) {
	req := abi.ChatRequest{Messages: []abi.ChatMessage{
		{Role: abi.RoleSystem}, {Role: abi.RoleUser, Content: "One."}, {Role: abi.RoleAssistant}, {Role: abi.RoleUser}, {Role: abi.RoleUser, Content: "Two."},
	}}
	body, _ := sent(t, model.Anthropic, req, true)
	if body["system"] != nil {
		t.Errorf("system: %v", body["system"])
	}
	want(t, "messages", body["messages"], `[{"role":"user","content":[{"type":"text","text":"One."},{"type":"text","text":"Two."}]}]`)
	sent(t, model.OpenAI, req, true)
}
