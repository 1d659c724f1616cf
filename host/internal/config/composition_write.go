package config

import (
	"bytes"
	"encoding/json"
	"time"
)

// Shapes of the tables of a composition, as the file has them. What is the default
// everywhere is left out; limits and grants never are.
type (
	swarmJSON struct {
		Name                string   `json:"name"`
		Version             string   `json:"version,omitempty"`
		Description         string   `json:"description,omitempty"`
		Keywords            []string `json:"keywords,omitempty"`
		Public              bool     `json:"public,omitempty"`
		Entrypoint          string   `json:"entrypoint"`
		BreakpointTools     []string `json:"breakpoint_tools,omitempty"`
		EnableInterswarm    bool     `json:"enable_interswarm,omitempty"`
		AllowAgentDiscovery bool     `json:"allow_agent_discovery,omitempty"`
		InterruptMode       string   `json:"interrupt_mode"`
	}
	agentJSON struct {
		Source           string          `json:"source,omitempty"`
		SHA256           string          `json:"sha256,omitempty"`
		CommTargets      []string        `json:"comm_targets,omitempty"`
		EnableEntrypoint bool            `json:"enable_entrypoint,omitempty"`
		CanCompleteTasks bool            `json:"can_complete_tasks,omitempty"`
		EnableInterswarm bool            `json:"enable_interswarm,omitempty"`
		Actions          []string        `json:"actions,omitempty"`
		Expose           []string        `json:"expose,omitempty"`
		ExcludeTools     []string        `json:"exclude_tools,omitempty"`
		Params           json.RawMessage `json:"params,omitempty"`
		Allow            allowJSON       `json:"allow"`
		Limits           limitsJSON      `json:"limits"`
	}
	actionJSON struct {
		Source      string            `json:"source,omitempty"`
		SHA256      string            `json:"sha256,omitempty"`
		Description string            `json:"description,omitempty"`
		Parameters  json.RawMessage   `json:"parameters,omitempty"`
		Params      json.RawMessage   `json:"params,omitempty"`
		Timeout     string            `json:"timeout"`
		Actions     []string          `json:"actions,omitempty"`
		Allow       allowJSON         `json:"allow"`
		Limits      *actionLimitsJSON `json:"limits,omitempty"`
	}
	allowJSON struct {
		LLM          []string `json:"llm,omitempty"`
		HTTP         []string `json:"http,omitempty"`
		HTTPNoKey    []string `json:"http_no_key,omitempty"`
		HTTPPrivate  bool     `json:"http_private,omitempty"`
		KV           string   `json:"kv,omitempty"`
		Secrets      []string `json:"secrets,omitempty"`
		RetryInDoubt bool     `json:"retry_in_doubt"`
	}
	actionLimitsJSON struct {
		Memory    Size   `json:"memory"`
		CPU       string `json:"cpu"`
		Fuel      int64  `json:"fuel"`
		Output    Size   `json:"output"`
		Stack     Size   `json:"stack"`
		HostCalls int    `json:"host_calls"`
		HostBytes Size   `json:"host_bytes"`
		Grace     string `json:"grace"`
	}
	limitsJSON struct {
		Memory    Size   `json:"memory"`
		Turn      string `json:"turn"`
		CPU       string `json:"cpu"`
		Fuel      int64  `json:"fuel"`
		Output    Size   `json:"output"`
		Stack     Size   `json:"stack"`
		HostCalls int    `json:"host_calls"`
		HostBytes Size   `json:"host_bytes"`
		Grace     string `json:"grace"`
		// What is unlimited is left out: texts of earlier versions have neither.
		Tokens int64   `json:"tokens,omitempty"`
		USD    float64 `json:"usd,omitempty"`
	}
)

// JSON writes the composition in the shape that [Config.ParseComposition] reads,
// always the same way.
func (x Composition) JSON() []byte {
	var b bytes.Buffer
	s := x.Swarm
	b.WriteString(`{"swarm":`)
	write(&b, swarmJSON{s.Name, s.Version, s.Description, s.Keywords, s.Public, s.Entrypoint, s.BreakpointTools, s.EnableInterswarm, s.AllowAgentDiscovery, s.InterruptMode})
	b.WriteString(`,"agents":{`)
	for i, a := range x.Agents {
		entry(&b, i, a.Name, agentJSON{
			a.Source.text(), a.SHA256, a.CommTargets, a.EnableEntrypoint, a.CanCompleteTasks, a.EnableInterswarm,
			a.Actions, a.Expose, a.ExcludeTools, full(a.Params), allowJSON(a.Allow), limitsOf(a.Limits),
		})
	}
	b.WriteString("}")
	if len(x.Actions) > 0 {
		b.WriteString(`,"actions":{`)
		for i, a := range x.Actions {
			entry(&b, i, a.Name, actionJSON{
				a.Source.text(), a.SHA256, a.Description, parametersOf(a), full(a.Params), a.Timeout.String(),
				a.Actions, allowJSON(a.Allow), actionLimitsOf(a),
			})
		}
		b.WriteString("}")
	}
	b.WriteString("}")
	return b.Bytes()
}

// full leaves out a table that is empty.
func full(table json.RawMessage) json.RawMessage {
	if string(table) == "{}" {
		return nil
	}
	return table
}

// parametersOf are those of an action. One for people needs some, be they empty.
func parametersOf(a Action) json.RawMessage {
	if a.Source.Kind == SourceHuman {
		return a.Parameters
	}
	return full(a.Parameters)
}

func limitsOf(l AgentLimits) limitsJSON {
	text := time.Duration.String
	return limitsJSON{l.Memory, text(l.Turn), text(l.CPU), l.Fuel, l.Output, l.Stack, l.HostCalls, l.HostBytes, text(l.Grace), l.Tokens, l.USD}
}

// actionLimitsOf are the limits of an action with code.
func actionLimitsOf(a Action) *actionLimitsJSON {
	if !a.Source.Kind.Coded() {
		return nil
	}
	l := a.Limits
	return &actionLimitsJSON{l.Memory, l.CPU.String(), l.Fuel, l.Output, l.Stack, l.HostCalls, l.HostBytes, l.Grace.String()}
}

// entry writes a named member of an object, which keeps its place.
func entry(b *bytes.Buffer, i int, name string, v any) {
	if i > 0 {
		b.WriteByte(',')
	}
	write(b, name)
	b.WriteByte(':')
	write(b, v)
}

// write encodes what always encodes: params were read from a text.
func write(b *bytes.Buffer, v any) {
	raw, _ := json.Marshal(v)
	b.Write(raw)
}
