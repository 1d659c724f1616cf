package abi

import "encoding/json"

// ChatRequest is the request of op llm.chat.
type ChatRequest struct {
	// Model is a name of the operator's [models], not a provider's.
	Model    string        `json:"model"`
	Messages []ChatMessage `json:"messages"`
	Tools    []Tool        `json:"tools,omitempty"`
	// ToolChoice is "auto" (as if absent), "none", "required", or the name of
	// one of the tools.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Schema is a JSON Schema that the text must follow.
	Schema json.RawMessage `json:"response_schema,omitempty"`
	// MaxTokens bounds the answer; 0 takes the model's bound.
	MaxTokens   int64    `json:"max_tokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
}

// Roles of a [ChatMessage].
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ChatMessage is one message of a conversation with a model.
type ChatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	// ToolCalls are an assistant's.
	ToolCalls []ChatCall `json:"tool_calls,omitempty"`
	// ToolCallID names the call that a tool's message answers, and Error says
	// that it failed.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Error      bool   `json:"error,omitempty"`
	// Carry is what an assistant's answer gave to be handed back unchanged with
	// it; only the model understands it.
	Carry json.RawMessage `json:"carry,omitempty"`
}

// ChatCall is a tool call that a model wants made.
type ChatCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments are as the model wrote them: they may be no JSON.
	Arguments string `json:"arguments"`
}

// Why a model stopped.
const (
	FinishStop      = "stop"
	FinishToolCalls = "tool_calls"
	FinishLength    = "length"
	FinishFiltered  = "filtered"
)

// ChatResponse is the answer of op llm.chat. A guest that reads it as a stream
// gets JSON lines of [ChatPiece] instead.
type ChatResponse struct {
	Text      string          `json:"text"`
	Reasoning string          `json:"reasoning,omitempty"`
	ToolCalls []ChatCall      `json:"tool_calls"`
	Finish    string          `json:"finish"`
	Usage     ChatUsage       `json:"usage"`
	Carry     json.RawMessage `json:"carry,omitempty"`
}

// ChatUsage is what a call has cost.
type ChatUsage struct {
	// InputTokens count the whole prompt, CachedTokens its part that
	// the provider had, CacheWriteTokens its part kept for the next call;
	// OutputTokens the answer with its reasoning.
	InputTokens      int64 `json:"input_tokens"`
	CachedTokens     int64 `json:"cached_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	OutputTokens     int64 `json:"output_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`
	// MicroUSD is the price in millionths of a dollar by the operator's list, 0
	// for a model without prices.
	MicroUSD int64 `json:"micro_usd,omitempty"`
}

// ChatPiece is one line of an answer that is read as it comes. Exactly one member
// is set; End is the last line, and has the whole answer but for Text and
// Reasoning, which were in the lines before.
type ChatPiece struct {
	Delta     string        `json:"delta,omitempty"`
	Reasoning string        `json:"reasoning,omitempty"`
	End       *ChatResponse `json:"end,omitempty"`
}
