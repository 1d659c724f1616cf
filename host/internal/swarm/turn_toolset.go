package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// toolset are the tools of an agent and their JSON.
type toolset struct {
	tools   []abi.Tool
	encoded json.RawMessage
}

// toolset returns the tools of the turn's agent. The result is shared, also between
// tenants whose swarms share the agent, and must not be changed. An agent without a
// definition has none.
func (t *Turn) toolset() *toolset {
	switch {
	case t.agent.tools == nil:
		return &toolset{encoded: json.RawMessage("[]")}
	case strings.HasPrefix(t.task.key.Instance, string(mail.RoleAdmin)+":"):
		return t.agent.adminTools
	}
	return t.agent.tools
}

// buildToolsets builds the toolsets of an agent of the definition.
func (a *Agent) buildToolsets(book []abi.Tool, def *Definition) (err error) {
	if a.tools, err = newToolset(book, def, a, def.Discovery); err != nil {
		return err
	}
	a.adminTools = a.tools
	if !def.Discovery && hasInterswarmTools(def, a) {
		a.adminTools, err = newToolset(book, def, a, true)
	}
	return err
}

func newToolset(book []abi.Tool, def *Definition, a *Agent, discovery bool) (*toolset, error) {
	s := &toolset{tools: orEmpty(pickTools(book, def, a, discovery))}
	var err error
	if s.encoded, err = json.Marshal(s.tools); err != nil {
		return nil, fmt.Errorf("tools of agent %q: %w", a.Name, err)
	}
	return s, nil
}

// hasInterswarmTools reports whether an agent has the tools for whole swarms.
func hasInterswarmTools(def *Definition, a *Agent) bool {
	return def.Interswarm && a.Interswarm && a.CanComplete
}

// pickTools selects an agent's MAIL tools and adds its actions.
func pickTools(book []abi.Tool, def *Definition, a *Agent, discovery bool) []abi.Tool {
	var tools []abi.Tool
	for _, tool := range book {
		if slices.Contains(a.Exclude, tool.Name) || !isToolFor(tool.Name, def, a, discovery) {
			continue
		}
		switch tool.Name {
		case mail.ToolSendRequest, mail.ToolSendResponse, mail.ToolSendInterrupt:
			tool.Parameters = withTargets(tool.Parameters, a.Targets)
		}
		tools = append(tools, tool)
	}
	for _, action := range slices.Concat(def.Human, def.Coded) {
		if slices.Contains(a.Actions, action.Name) {
			tools = append(tools, action)
		}
	}
	return tools
}

// isToolFor reports whether an agent gets a tool: sending needs a target; interrupts,
// broadcasts, completion and the tools for whole swarms are for supervisors.
func isToolFor(tool string, def *Definition, a *Agent, discovery bool) bool {
	switch tool {
	case mail.ToolSendRequest, mail.ToolSendResponse:
		return len(a.Targets) > 0
	case mail.ToolSendInterrupt, mail.ToolSendBroadcast:
		return len(a.Targets) > 0 && a.CanComplete
	case mail.ToolTaskComplete:
		return a.CanComplete
	case mail.ToolSendInterswarmBroadcast:
		return hasInterswarmTools(def, a)
	case mail.ToolDiscoverSwarms:
		return discovery && hasInterswarmTools(def, a)
	}
	return true
}

// withTargets adds the agent's comm_targets to a tool's schema, so that a model does
// not have to guess them.
func withTargets(schema json.RawMessage, targets []string) json.RawMessage {
	var doc map[string]any
	if err := json.Unmarshal(schema, &doc); err != nil {
		return schema
	}
	props, _ := doc["properties"].(map[string]any)
	target, _ := props["target"].(map[string]any)
	if target == nil {
		return schema
	}
	target["enum"] = targets
	out, err := json.Marshal(doc)
	if err != nil {
		return schema
	}
	return out
}
