package iacp

import (
	"encoding/json"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/wire"
)

// failure is the error of a task_response and of a tool_response.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// failures are the codes of what is no answer.
var failures = map[gateway.Outcome]string{
	gateway.Failed: "FAILED", gateway.TimedOut: codeTimeout, gateway.Cancelled: "CANCELLED",
}

// taskResponse is the payload of a task_response (I-031), of at most so many levels. An agent may
// write one itself, as bundled:workflow does.
func taskResponse(a gateway.Answer, levels int) any {
	if code, failed := failures[a.Outcome]; failed {
		return map[string]any{"status": "failed", "error": failure{code, a.Body}}
	}
	if own := ownPayload(a.Body, levels, "accepted", "rejected", "completed", "failed", "in_progress"); own != nil {
		return own
	}
	return map[string]any{"status": "completed", "result": resultOf(a.Body, levels)}
}

// toolResponse is the payload of a tool_response (I-035), of at most so many levels; bundled:tool
// writes it itself.
func toolResponse(a gateway.Answer, levels int) any {
	if code, failed := failures[a.Outcome]; failed {
		return map[string]any{"status": "error", "error": failure{code, a.Body}}
	}
	if own := ownPayload(a.Body, levels, "success", "error", "permission_denied"); own != nil {
		return own
	}
	return map[string]any{"status": "success", "output": resultOf(a.Body, levels)}
}

// maxNesting bounds the levels of an agent's text: encoding/json reads no more.
const maxNesting = 10_000

// ownPayload returns an agent's text that is a payload with one of some states, nil for another. A
// member that has too many levels (I-007) is a text of its JSON there, as by [resultOf].
func ownPayload(text string, levels int, states ...string) json.RawMessage {
	raw := []byte(text)
	var has struct {
		Status string `json:"status"`
	}
	if !isObject(text) || json.Unmarshal(raw, &has) != nil || !slices.Contains(states, has.Status) || !message.CheckDepth(raw, maxNesting) {
		return nil
	}
	if message.CheckDepth(raw, levels) {
		return raw
	}
	members, _ := wire.Members(raw)
	for name, value := range members {
		if !message.CheckDepth(value, levels-1) {
			members[name] = wire.MustEncode(string(value))
		}
	}
	return wire.MustEncode(members)
}

func isObject(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// resultOf is an agent's text as a value of JSON: an object or a list as it is, within the
// levels of a payload, and else the text.
func resultOf(text string, levels int) any {
	trimmed := strings.TrimSpace(text)
	if (isObject(trimmed) || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed)) && message.CheckDepth([]byte(trimmed), levels-1) {
		return json.RawMessage(trimmed)
	}
	return text
}
