package swarm

import (
	"encoding/json"
	"fmt"
	"slices"

	"skep/abi"
	"skep/spec/mail"
)

// toolset is the tools an agent is given, with the schemas that its calls are
// checked against, and their JSON.
type toolset struct {
	tools   []abi.Tool
	encoded json.RawMessage
}

// toolset returns an agent's tools. The result is shared, also by tenants whose
// swarms have the agent in common, and must not be changed. An agent that no
// definition has any more is given none.
func (r *Runtime) toolset(a *Agent) *toolset {
	if a.tools != nil {
		return a.tools
	}
	return &toolset{encoded: json.RawMessage("[]")}
}

func newToolset(book, actions []abi.Tool, a *Agent) (*toolset, error) {
	s := &toolset{tools: orEmpty(pickTools(book, actions, a))}
	var err error
	if s.encoded, err = json.Marshal(s.tools); err != nil {
		return nil, fmt.Errorf("tools of agent %q: %w", a.Name, err)
	}
	return s, nil
}

// pickTools picks an agent's tools out of the book: sending needs somebody
// to send to, interrupts, broadcasts and completion are for supervisors.
func pickTools(book, actions []abi.Tool, a *Agent) []abi.Tool {
	var tools []abi.Tool
	for _, tool := range book {
		if slices.Contains(a.Exclude, tool.Name) {
			continue
		}
		switch tool.Name {
		case mail.ToolSendRequest, mail.ToolSendResponse:
			if len(a.Targets) == 0 {
				continue
			}
			tool.Parameters = withTargets(tool.Parameters, a.Targets)
		case mail.ToolSendInterrupt:
			if len(a.Targets) == 0 || !a.CanComplete {
				continue
			}
			tool.Parameters = withTargets(tool.Parameters, a.Targets)
		case mail.ToolSendBroadcast:
			if len(a.Targets) == 0 || !a.CanComplete {
				continue
			}
		case mail.ToolTaskComplete:
			if !a.CanComplete {
				continue
			}
		}
		tools = append(tools, tool)
	}
	for _, action := range actions {
		if slices.Contains(a.Actions, action.Name) {
			tools = append(tools, action)
		}
	}
	return tools
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
