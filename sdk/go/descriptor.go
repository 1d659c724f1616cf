package skep

import (
	"encoding/json"

	"skep/sdk/go/internal/abi"
)

// Descriptor describes a module to operators before they run it. Name and
// Version are mandatory.
type Descriptor struct {
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Description string      `json:"description,omitempty"`
	Agents      []AgentInfo `json:"agents,omitempty"`
	// Actions are what an [Actor] answers.
	Actions  []ActionInfo `json:"actions,omitempty"`
	Requests []Request    `json:"requests,omitempty"`
}

// AgentInfo describes one agent the module can play.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Params is the JSON Schema of the agent's params.
	Params       json.RawMessage `json:"params,omitempty"`
	Capabilities []Capability    `json:"capabilities,omitempty"`
	Roles        []string        `json:"roles,omitempty"`
	Capacity     int             `json:"capacity,omitempty"`
}

// Capability is one thing an agent can do, for listings in other protocols.
type Capability struct {
	ID           string          `json:"id"`
	Version      string          `json:"version,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Constraints bound the input, as in {"max_input_length":10000,"supported_languages":["en"]}.
	Constraints json.RawMessage `json:"constraints,omitempty"`
}

// ActionInfo describes one action the module exports.
type ActionInfo struct {
	// Name matches [a-z][a-z0-9_]{0,63}.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments.
	Parameters json.RawMessage `json:"parameters"`
	// Timeout is for instance "5s".
	Timeout    string `json:"timeout,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
	// Effect is "read" for an action that changes nothing; others may leave it out.
	Effect string `json:"effect,omitempty"`
}

// Request is a grant the module asks for. Allow is a key of an agent's allow
// table in swarm.toml: llm, http, kv or secrets. The MAIL tools need none.
type Request struct {
	Allow  string          `json:"allow"`
	Value  json.RawMessage `json:"value,omitempty"`
	Reason string          `json:"reason"`
	// Optional lets the module run without the grant; the call is then
	// refused with Denied.
	Optional bool `json:"optional,omitempty"`
}

// encode renders the descriptor with the ABI version the SDK speaks.
func (d Descriptor) encode() ([]byte, error) {
	return json.Marshal(struct {
		ABI int `json:"abi"`
		Descriptor
	}{abi.Version, d})
}
