package capability

import (
	"regexp"
	"slices"
	"strconv"

	"skep/abi"
)

// Limits of a conversation.
const (
	maxChatMessages = 2000
	maxChatTools    = 128
	maxTemperature  = 2
)

// chatName matches tool names that every provider accepts.
var chatName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkChat refuses a conversation that no provider accepts.
func checkChat(ask abi.ChatRequest) *abi.Error {
	bad := func(member, format string, args ...any) *abi.Error {
		return abi.Errorf(abi.CodeInvalid, abi.OpLLMChat, member, "llm.chat: "+format, args...)
	}
	switch n := len(ask.Messages); {
	case ask.Model == "":
		return bad("model", "model is missing; it must be a name of [models]")
	case n == 0:
		return bad("messages", "messages must hold at least one message")
	case n > maxChatMessages:
		return abi.Errorf(abi.CodeLimit, abi.OpLLMChat, "messages", "a conversation of %d messages, at most %d", n, maxChatMessages)
	case ask.MaxTokens < 0:
		return bad("max_tokens", "max_tokens must not be negative")
	case ask.Temperature != nil && !(*ask.Temperature >= 0 && *ask.Temperature <= maxTemperature):
		return bad("temperature", "temperature must be from 0 to %d, not %v", maxTemperature, *ask.Temperature)
	case len(ask.Schema) > 0 && ask.Schema[0] != '{':
		return bad("response_schema", "response_schema must be a JSON Schema, an object")
	}
	for i, m := range ask.Messages {
		if why := chatMessageFault(m); why != "" {
			return bad("messages", "messages[%d]%s", i, why)
		}
	}
	return checkChatTools(ask)
}

// chatMessageFault describes what is wrong with a message; empty for a valid one.
func chatMessageFault(m abi.ChatMessage) string {
	roles := []string{abi.RoleSystem, abi.RoleUser, abi.RoleAssistant, abi.RoleTool}
	switch {
	case !slices.Contains(roles, m.Role):
		return ".role must be system, user, assistant or tool"
	case m.Role == abi.RoleTool && m.ToolCallID == "":
		return ".tool_call_id is missing; a tool's message names the call that it answers"
	case m.Role != abi.RoleTool && (m.ToolCallID != "" || m.Error):
		return ": tool_call_id and error are for a tool's message"
	case m.Role != abi.RoleAssistant && (len(m.ToolCalls) > 0 || len(m.Carry) > 0):
		return ": tool_calls and carry are for an assistant's message"
	}
	for i, c := range m.ToolCalls {
		if c.ID == "" || c.Name == "" {
			return ".tool_calls[" + strconv.Itoa(i) + "] must have an id and a name"
		}
	}
	return ""
}

func checkChatTools(ask abi.ChatRequest) *abi.Error {
	bad := func(member, format string, args ...any) *abi.Error {
		return abi.Errorf(abi.CodeInvalid, abi.OpLLMChat, member, "llm.chat: "+format, args...)
	}
	if n := len(ask.Tools); n > maxChatTools {
		return abi.Errorf(abi.CodeLimit, abi.OpLLMChat, "tools", "%d tools, at most %d", n, maxChatTools)
	}
	names := []string{"", "auto", "none", "required"}
	for i, tool := range ask.Tools {
		switch {
		case !chatName.MatchString(tool.Name):
			return bad("tools", "tools[%d].name %.64q does not match %s", i, tool.Name, chatName)
		case slices.Contains(names, tool.Name):
			return bad("tools", "tools[%d].name %q is taken", i, tool.Name)
		case len(tool.Parameters) > 0 && tool.Parameters[0] != '{':
			return bad("tools", "tools[%d].parameters must be a JSON Schema, an object", i)
		}
		names = append(names, tool.Name)
	}
	switch {
	case !slices.Contains(names, ask.ToolChoice):
		return bad("tool_choice", "tool_choice must be auto, none, required or the name of one of the tools, not %.64q", ask.ToolChoice)
	case len(ask.Tools) == 0 && ask.ToolChoice == "required":
		return bad("tool_choice", "tool_choice is required and there are no tools")
	}
	return nil
}
