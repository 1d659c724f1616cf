package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
)

// tool is an exposed agent, or one capability of it, as a client sees it.
type tool struct {
	name  string
	agent gateway.ExposedAgent
	// capability is set if the tool takes its input.
	capability *gateway.Capability
	// declared is the schema of that input.
	declared map[string]json.RawMessage
}

// tools are what a caller may call now: a tool for each agent, named after it, and if
// several of its capabilities declare an input, one AGENT__CAPABILITY for each. Where
// agents of several swarms are served, SWARM__ comes before the name.
func (g *Gateway) tools(q *request) (list []tool) {
	agents := g.agents(q)
	several := slices.ContainsFunc(agents, func(a gateway.ExposedAgent) bool { return a.Swarm != agents[0].Swarm })
	for _, a := range agents {
		name := a.Name
		if several {
			name = a.Swarm + "__" + name
		}
		list = append(list, toolsOf(a, plain(name))...)
	}
	used := map[string]bool{}
	return slices.DeleteFunc(list, func(t tool) bool {
		again := used[t.name]
		used[t.name] = true
		return again
	})
}

// agents are the exposed agents that a caller may see at a path.
func (g *Gateway) agents(q *request) []gateway.ExposedAgent {
	return slices.DeleteFunc(g.rt.ExposedAgents(q.caller), func(a gateway.ExposedAgent) bool {
		return q.swarm != "" && a.Swarm != q.swarm
	})
}

func toolsOf(a gateway.ExposedAgent, name string) []tool {
	var list []tool
	for i := range a.Capabilities {
		c := &a.Capabilities[i]
		var declared map[string]json.RawMessage
		if json.Unmarshal(c.Input, &declared) == nil && string(declared["type"]) == `"object"` {
			list = append(list, tool{name + "__" + plain(c.ID), a, c, declared})
		}
	}
	if len(list) == 1 {
		list[0].name = name
		return list
	}
	return append([]tool{{name: name, agent: a}}, list...)
}

// plain replaces what a tool's name must not have
// (https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names).
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)) {
			return r
		}
		return '_'
	}, name)
}

// tool finds a tool by its name.
func (g *Gateway) tool(q *request, name string) (tool, bool) {
	list := g.tools(q)
	i := slices.IndexFunc(list, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return list[i], true
}

// isAsked reports whether an exchange is with the tool's agent.
func (t tool) isAsked(x gateway.Exchange) bool {
	return x.Task.Swarm == t.agent.Swarm && x.Agent == t.agent.Name
}

// describe is the tool as tools/list has it.
func (t tool) describe() *mcp.Tool {
	d := t.agent.Description
	if t.capability != nil && t.capability.Description != "" {
		d = t.capability.Description
	}
	if d == "" {
		d = "Sends a message to the agent " + t.agent.Name + " and returns its answer."
	}
	one := &mcp.Tool{Name: t.name, Title: t.agent.Name, Description: d, InputSchema: t.input(), OutputSchema: output}
	if t.capability != nil && t.capability.ReadOnly {
		one.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
	}
	return one
}

// own are the arguments of every tool, where the agent declares none of the same name.
var own = map[string]string{
	"message":     "what to tell the agent",
	"subject":     "the subject of the message",
	"task_id":     "continues a task: with a message it goes on, without one the call waits for the answer",
	"question_id": "the question that the message answers",
}

// input is the schema of the arguments: what the agent declares, and what every tool takes.
func (t tool) input() map[string]any {
	schema := map[string]any{"type": "object", "additionalProperties": false}
	for key, value := range t.declared {
		schema[key] = value
	}
	properties := map[string]any{}
	for name := range own {
		if t.takes(name) {
			properties[name] = map[string]any{"type": "string", "description": own[name]}
		}
	}
	for name, value := range t.properties() {
		properties[name] = value
	}
	schema["properties"] = properties
	return schema
}

// takes reports whether an argument is the gateway's and not the agent's. A message to an
// agent that declares its input is an answer to its question.
func (t tool) takes(name string) bool {
	_, declared := t.properties()[name]
	return own[name] != "" && !declared
}

func (t tool) properties() (list map[string]json.RawMessage) {
	_ = json.Unmarshal(t.declared["properties"], &list)
	return list
}

// output is the schema of every result.
var output = json.RawMessage(`{
	"type": "object",
	"properties": {
		"task_id": {"type": "string", "description": "continues the task in a later call"},
		"status": {"enum": ["done", "working", "input_required", "failed", "timed_out", "cancelled"]},
		"agent": {"type": "string"},
		"subject": {"type": "string"},
		"text": {"type": "string"},
		"data": {"description": "the text, where it is a JSON object or array"},
		"questions": {"type": "array", "items": {
			"type": "object",
			"properties": {"id": {"type": "string"}, "text": {"type": "string"}, "schema": {"type": "object"}},
			"required": ["id", "text"]
		}}
	},
	"required": ["task_id", "status"]
}`)
