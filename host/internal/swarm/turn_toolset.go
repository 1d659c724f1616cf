package swarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"skep/abi"
	"skep/spec/mail"
)

// toolset are the tools of an agent and their JSON.
type toolset struct {
	tools   []abi.Tool
	encoded json.RawMessage
}

// toolsets keeps the toolsets of the agents of a definition that is in force. They are
// many times as large as the definition, so an older one keeps none: its turns make their
// own. It is safe for concurrent use.
type toolsets struct {
	byAgent atomic.Pointer[map[string]agentToolsets] // nil for none
}

// agentToolsets are an agent's toolsets; admin is for tasks of admins.
type agentToolsets struct{ all, admin *toolset }

func (t *toolsets) drop() { t.byAgent.Store(nil) }

// keepToolsets builds the toolsets of all agents of a definition.
func (r *Runtime) keepToolsets(def *Definition) (*toolsets, error) {
	byAgent := make(map[string]agentToolsets, len(def.Agents))
	for i := range def.Agents {
		a := &def.Agents[i]
		all, err := newToolset(r.mailToolList, def, a, def.Discovery)
		admin := all
		if err == nil && !def.Discovery && hasInterswarmTools(def, a) {
			admin, err = newToolset(r.mailToolList, def, a, true)
		}
		if err != nil {
			return nil, err
		}
		byAgent[a.Name] = agentToolsets{all, admin}
	}
	kept := &toolsets{}
	kept.byAgent.Store(&byAgent)
	return kept, nil
}

// toolset returns the tools of the turn's agent. The result may be shared, also between
// tenants, and must not be changed. An agent without a definition has none.
func (t *Turn) toolset() *toolset {
	if t.tools == nil {
		t.tools = t.findToolset(strings.HasPrefix(t.task.key.Instance, string(mail.RoleAdmin)+":"))
	}
	return t.tools
}

func (t *Turn) findToolset(admin bool) *toolset {
	if t.def.toolsets != nil {
		if byAgent := t.def.toolsets.byAgent.Load(); byAgent != nil {
			found, ok := (*byAgent)[t.agent.Name]
			switch {
			case !ok:
				return emptyToolset()
			case admin:
				return found.admin
			}
			return found.all
		}
	}
	if _, ok := t.def.agent(t.agent.Name); !ok {
		return emptyToolset()
	}
	s, err := newToolset(t.rt.mailToolList, t.def, t.agent, t.def.Discovery || admin)
	if err != nil {
		t.rt.log.Error("a turn has no tools", "task_id", t.task.key.Task, "turn", t.row.N, "err", err)
		return emptyToolset()
	}
	return s
}

func emptyToolset() *toolset { return &toolset{encoded: json.RawMessage("[]")} }

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
		case mail.ToolSendResponse:
			if len(a.Expose) == 0 { // any caller of a gateway may be answered
				tool.Parameters = withTargets(tool.Parameters, a.Targets)
			}
		case mail.ToolSendRequest, mail.ToolSendInterrupt:
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

// isToolFor reports whether an agent gets a tool: sending needs a target, but an exposed
// agent answers its callers; interrupts, broadcasts, completion and the tools for whole
// swarms are for supervisors.
func isToolFor(tool string, def *Definition, a *Agent, discovery bool) bool {
	switch tool {
	case mail.ToolSendRequest:
		return len(a.Targets) > 0
	case mail.ToolSendResponse:
		return len(a.Targets) > 0 || len(a.Expose) > 0
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
