package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// toolset is the tools an agent is given, with the schemas that its calls are
// checked against, and their JSON.
type toolset struct {
	tools   []abi.Tool
	encoded json.RawMessage
}

// toolset returns the tools of the turn's agent. The result is shared, also by
// tenants whose swarms have the agent in common, and must not be changed. An agent
// that no definition has any more is given none.
func (t *Turn) toolset() *toolset {
	switch {
	case t.agent.tools == nil:
		return &toolset{encoded: json.RawMessage("[]")}
	case strings.HasPrefix(t.task.key.Instance, string(mail.RoleAdmin)+":"):
		return t.agent.adminTools
	}
	return t.agent.tools
}

// equip gives an agent of the definition its tools.
func (a *Agent) equip(book []abi.Tool, def *Definition) (err error) {
	if a.tools, err = newToolset(book, def, a, def.Discovery); err != nil {
		return err
	}
	a.adminTools = a.tools
	if !def.Discovery && leadsAbroad(def, a) {
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

// leadsAbroad reports whether an agent has the tools that concern whole swarms.
func leadsAbroad(def *Definition, a *Agent) bool {
	return def.Interswarm && a.Interswarm && a.CanComplete
}

// pickTools picks an agent's tools out of the book, and adds its actions.
func pickTools(book []abi.Tool, def *Definition, a *Agent, discovery bool) []abi.Tool {
	var tools []abi.Tool
	for _, tool := range book {
		if slices.Contains(a.Exclude, tool.Name) || !fitting(tool.Name, def, a, discovery) {
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

// fitting reports whether a tool is for an agent: sending needs somebody to send
// to, interrupts, broadcasts and completion are for supervisors, and so is what
// concerns whole swarms.
func fitting(tool string, def *Definition, a *Agent, discovery bool) bool {
	switch tool {
	case mail.ToolSendRequest, mail.ToolSendResponse:
		return len(a.Targets) > 0
	case mail.ToolSendInterrupt, mail.ToolSendBroadcast:
		return len(a.Targets) > 0 && a.CanComplete
	case mail.ToolTaskComplete:
		return a.CanComplete
	case mail.ToolSendInterswarmBroadcast:
		return leadsAbroad(def, a)
	case mail.ToolDiscoverSwarms:
		return discovery && leadsAbroad(def, a)
	}
	return true
}

// withTargets lists the agent's comm_targets in the schema it is shown, so
// that a model does not have to guess them.
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
