package amp

import (
	"encoding/json"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// Members of an answer's metadata about the models that were called for it (M-025).
const (
	tokensMember = "tokens_consumed"
	modelMember  = "model_used"
)

// maxModelName bounds a partner's name of a model, in bytes.
const maxModelName = 256

// addUsage adds what an answer of ours has used of models.
func addUsage(metadata map[string]any, a gateway.Answer) {
	if a.Tokens > 0 {
		metadata[tokensMember] = a.Tokens
	}
	if len(a.Models) > 0 {
		metadata[modelMember] = strings.Join(a.Models, ", ")
	}
}

// usageOf is what a partner claims of its models, for the agent that has asked. It counts in no usage of
// ours, which budgets are held against.
func usageOf(in message.Received) map[string]any {
	var p struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(in.Payload, &p) != nil {
		return nil
	}
	info := map[string]any{}
	var tokens int64
	if raw, has := p.Metadata[tokensMember]; has && json.Unmarshal(raw, &tokens) == nil && tokens >= 0 {
		info[tokensMember] = tokens
	}
	if name := gateway.ExtensionText(p.Metadata[modelMember]); name != "" && len(name) <= maxModelName {
		info[modelMember] = name
	}
	return info
}
