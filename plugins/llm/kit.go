package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	skep "skep/sdk/go"
)

// Kinds of tool.
const (
	kindMail = iota + 1
	kindAction
	kindOp
)

// mailTools are MAIL's tools. Whatever else the host gives an agent is an action.
var mailTools = []string{
	"send_request", "send_response", "send_interrupt", "send_broadcast", "acknowledge_broadcast", "ignore_broadcast",
	"await_message", "help", "task_complete", "send_interswarm_broadcast", "discover_swarms",
}

// telling are the MAIL tools whose text the model has asked for, so that it must
// see it.
var telling = []string{"help", "discover_swarms"}

// ending are the MAIL tools behind which no other is possible.
var ending = []string{"task_complete", "await_message"}

// kit is what the model may call.
type kit struct {
	tools []skep.ChatTool
	kinds map[string]int
}

// newKit picks the agent's tools as its params say.
func newKit(t *skep.Turn, p *params) (*kit, error) {
	given, err := t.Tools()
	if err != nil {
		return nil, err
	}
	all := &kit{kinds: map[string]int{}}
	for _, tool := range given {
		kind := kindAction
		if slices.Contains(mailTools, tool.Name) {
			kind = kindMail
		}
		all.add(kind, skep.ChatTool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	for _, name := range p.Ops {
		op, ok := opTools[name]
		switch {
		case !ok:
			return nil, skep.Errorf(skep.Invalid, "[agents.%s] params.ops: there is no %q; there are %s", t.Agent.Name, name, strings.Join(opNames(), ", "))
		case all.has(name):
			return nil, skep.Errorf(skep.Invalid, "[agents.%s] params.ops: the agent has a tool %q already", t.Agent.Name, name)
		}
		all.add(kindOp, skep.ChatTool{Name: name, Description: op.description, Parameters: json.RawMessage(op.parameters)})
	}
	if err := all.know("include", t.Agent.Name, p.Tools.Include); err != nil {
		return nil, err
	}
	if err := all.know("exclude", t.Agent.Name, p.Tools.Exclude); err != nil {
		return nil, err
	}
	picked := &kit{kinds: map[string]int{}}
	for _, tool := range all.tools {
		if slices.Contains(p.Tools.Exclude, tool.Name) || len(p.Tools.Include) > 0 && !slices.Contains(p.Tools.Include, tool.Name) {
			continue
		}
		picked.add(all.kinds[tool.Name], tool)
	}
	return picked, nil
}

// know refuses names that no tool has: they are likely misspelled. A MAIL tool that
// this agent is not given may be named.
func (k *kit) know(key, agent string, names []string) error {
	for _, name := range names {
		if !k.has(name) && !slices.Contains(mailTools, name) {
			return skep.Errorf(skep.Invalid, "[agents.%s] params.tools.%s: the agent has no tool %q; it has %s", agent, key, name, k.list())
		}
	}
	return nil
}

func (k *kit) add(kind int, tool skep.ChatTool) {
	k.tools, k.kinds[tool.Name] = append(k.tools, tool), kind
}

func (k *kit) has(name string) bool { return k.kinds[name] != 0 }

func (k *kit) list() string {
	names := make([]string, len(k.tools))
	for i, tool := range k.tools {
		names[i] = tool.Name
	}
	return strings.Join(names, ", ")
}

// arguments reads what the model wrote as the arguments of a call, and explains faults
// to it. What the host would refuse is found here where it
// can be: a refusal of the host costs the agent a turn more, since it comes as mail
// as well.
func (k *kit) arguments(c skep.ChatCall) (json.RawMessage, error) {
	i := slices.IndexFunc(k.tools, func(t skep.ChatTool) bool { return t.Name == c.Name })
	if i < 0 {
		return nil, fmt.Errorf("there is no tool %q; the tools are %s", cut(c.Name, 100), k.list())
	}
	raw := strings.TrimSpace(c.Arguments)
	if raw == "" || raw == "null" {
		raw = "{}"
	}
	var value any
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		return nil, fmt.Errorf("the arguments of %s are no JSON (%w); write one JSON object. They were: %s", c.Name, err, cut(raw, 500))
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, fmt.Errorf("the arguments of %s must be one JSON object", c.Name)
	}
	var s schema
	if err := json.Unmarshal(k.tools[i].Parameters, &s); err != nil {
		return json.RawMessage(raw), nil // one this reader does not know; the host checks
	}
	if err := s.check("", value); err != nil {
		return nil, fmt.Errorf("the arguments of %s are wrong: %w", c.Name, err)
	}
	return json.RawMessage(raw), nil
}
