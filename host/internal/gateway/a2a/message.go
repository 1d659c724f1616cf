package a2a

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Limits of a message.
const (
	maxParts    = 100
	maxMetadata = 16 << 10 // bytes that agents see of a message's metadata
)

// Members of a message's metadata that the gateway reads and writes.
const (
	metaTrace    = "traceparent"
	metaState    = "tracestate"
	metaHops     = "skep_hops"
	metaQuestion = "skep_question"
)

// checkMessage returns why a message cannot be taken.
func checkMessage(m *a2a.Message) error {
	switch {
	case m == nil:
		return invalid("the request has no message")
	case m.ID == "" || len(m.ID) > maxID || !mail.Printable(m.ID):
		return invalid(fmt.Sprintf("messageId must have 1 to %d printable characters", maxID))
	case len(m.ContextID) > maxID || !mail.Printable(m.ContextID):
		return invalid(fmt.Sprintf("contextId must have at most %d printable characters", maxID))
	case m.Role != a2a.MessageRoleUser:
		return invalid("role must be ROLE_USER: only clients send messages")
	case len(m.Parts) == 0 || len(m.Parts) > maxParts:
		return invalid(fmt.Sprintf("parts must have 1 to %d entries", maxParts))
	}
	return nil
}

// outputModes are the media types of answers.
var outputModes = []string{"text/plain", "application/json"}

// checkModes refuses a caller that can read nothing of what agents answer.
func checkModes(accepted []string) error {
	if len(accepted) == 0 || slices.ContainsFunc(accepted, func(mode string) bool {
		mode = strings.ToLower(strings.TrimSpace(mode))
		return slices.Contains(outputModes, mode) || slices.Contains([]string{"*/*", "text/*", "application/*", "text"}, mode)
	}) {
		return nil
	}
	return a2a.NewError(a2a.ErrUnsupportedContentType, "answers are "+strings.Join(outputModes, " or "))
}

// askOf returns a message as the runtime takes it; raw is its JSON.
func askOf(c *call, m *a2a.Message, raw []byte) (gateway.Ask, error) {
	if c.depth > 0 {
		if err := wire.CheckJSON(raw, Name, c.depth); err != nil {
			return gateway.Ask{}, invalid("the message " + err.Error())
		}
	}
	body, parts, err := contentOf(m.Parts)
	if err != nil {
		return gateway.Ask{}, err
	}
	sum, err := digest(c.agent, m, raw)
	if err != nil {
		return gateway.Ask{}, err
	}
	parent, _ := m.Metadata[metaTrace].(string)
	state, _ := m.Metadata[metaState].(string)
	hops, _ := m.Metadata[metaHops].(float64)
	return gateway.Ask{
		Kind: gateway.Asks, ID: m.ID, Digest: sum,
		Swarm: c.agent.Swarm, To: []string{c.agent.Name}, Conversation: m.ContextID,
		Body: body, Parts: parts, Raw: raw, Trace: cmp.Or(c.trace, swarm.ParseTrace(parent, state)), Hops: int(min(max(hops, 0), 1000)),
		Info: infoOf(c, m),
	}, nil
}

// digest is what a repeat of a message must have too: all but the trace and the hops, which
// are others on another way. It covers the agent, since each has an address of its own.
func digest(a *gateway.ExposedAgent, m *a2a.Message, raw []byte) (sum [32]byte, err error) {
	fixed := maps.Clone(m.Metadata)
	maps.DeleteFunc(fixed, func(name string, _ any) bool { return name == metaTrace || name == metaState || name == metaHops })
	if len(fixed) < len(m.Metadata) {
		repeated := *m
		repeated.Metadata = fixed
		raw, err = json.Marshal(&repeated)
	}
	return sha256.Sum256(slices.Concat([]byte(a.Swarm+"/"+a.Name+"\n"), raw)), err
}

// infoOf is what agents see of a message besides its content.
func infoOf(c *call, m *a2a.Message) map[string]any {
	info := map[string]any{"protocol": Name, "version": string(c.version), "type": "SendMessage"}
	if len(m.Extensions) > 0 {
		info["extensions"] = m.Extensions
	}
	if raw, err := json.Marshal(m.Metadata); err == nil && len(m.Metadata) > 0 && len(raw) <= maxMetadata {
		info["metadata"] = m.Metadata
	}
	return info
}
