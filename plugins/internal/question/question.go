// Package question owns what the bundled agents have in common as to what they are asked: whether a
// body is too long for them, which request an interrupt withdraws, and how much of a text an answer
// repeats. It must not know what they do.
package question

import (
	"encoding/json"
	"strings"

	skep "skep/sdk/go"
)

// IsLong reports whether a gateway has put what is too long for a body into a part.
func IsLong(m *skep.Message) bool {
	var routing struct {
		Gateway struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"gateway"`
	}
	return m.Body == "" && json.Unmarshal(m.Routing, &routing) == nil && len(routing.Gateway.Parts) > 0
}

// Withdrawn is the id of the request that a body withdraws, as interrupts of bundled:workflow do. It
// returns false for another body.
func Withdrawn(body string) (id string, withdraws bool) {
	var c struct {
		Type    string `json:"message_type"`
		Payload struct {
			ID string `json:"message_id"`
		} `json:"payload"`
	}
	withdraws = json.Unmarshal([]byte(body), &c) == nil && c.Type == "workflow_cancel"
	return c.Payload.ID, withdraws
}

// Clip is a text of at most so many bytes, and an ellipsis where it is cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
