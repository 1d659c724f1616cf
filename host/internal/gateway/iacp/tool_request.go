package iacp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// checkTool refuses a tool for which the partner may not ask (I-073).
func (g *Gateway) checkTool(c gateway.Caller, m message.Message) error {
	p, _ := g.Runtime.Partner(c.Realm)
	tools, _ := p.Options["tools"].([]string)
	if m.Type != message.ToolRequest || len(tools) == 0 {
		return nil
	}
	var asked struct {
		Name string `json:"tool_name"`
	}
	_ = json.Unmarshal(m.Payload, &asked) // without a name it is none of them
	if !slices.Contains(tools, asked.Name) {
		return refusedf(codeDenied, "the partner may not ask for this tool")
	}
	return nil
}

// noToolError is why a tool_request to an agent without actions is not taken: it would run nothing,
// and the permissions in it would bound nothing.
type noToolError struct{ agent string }

// Error implements error.
func (e *noToolError) Error() string {
	return fmt.Sprintf("the agent %q has no tools: a tool_request is for one whose source is bundled:tool; ask this one by a task_request", e.agent)
}

// Unwrap implements the interface that errors.Is uses.
func (*noToolError) Unwrap() error { return gateway.ErrInvalid }

// payload is the payload of a tool_response.
func (e *noToolError) payload() any {
	return map[string]any{"status": "error", "execution_time": 0, "error": failure{"TOOL_NOT_FOUND", e.Error()}}
}

// checkIsTool refuses a tool_request to an agent of ours that is no tool.
func (g *Gateway) checkIsTool(c gateway.Caller, m message.Message, to recipients) error {
	if m.Type != message.ToolRequest {
		return nil
	}
	for _, a := range g.Runtime.ExposedAgents(c) {
		isAction := func(has gateway.Capability) bool { return has.Action }
		if a.Swarm == to.swarm && slices.Contains(to.names, a.Name) && !slices.ContainsFunc(a.Capabilities, isAction) {
			return &noToolError{a.Name}
		}
	}
	return nil
}

// refuseTool answers a tool_request that is refused with a tool_response, where that has a word for
// it. It returns false for another fault.
func (c *conn) refuseTool(m message.Message, err error) bool {
	none := new(noToolError)
	if !errors.As(err, &none) {
		return false
	}
	_ = c.tell(message.ToolResponse, m, none.payload())
	return true
}
