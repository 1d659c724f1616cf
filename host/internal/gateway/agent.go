package gateway

import "encoding/json"

// ExposedAgent is one agent that a caller may see: exposed through the gateway by the
// definition in force for the caller's tenant, and not hidden from his realm.
type ExposedAgent struct {
	Swarm, Name string
	Description string
	Version     string
	// Entrypoint is set for an agent that users may write to.
	Entrypoint   bool
	Streams      bool
	Capabilities []Capability
}

// Capability is one thing that an agent can do, by its own description.
type Capability struct {
	ID, Version, Description string
	Tags, Examples           []string
	Input, Output            json.RawMessage // JSON Schema, nil for any
	Constraints              json.RawMessage // a JSON object, nil for none
	// Action is set for an action, ReadOnly where it changes nothing.
	Action, ReadOnly bool
}

// ForeignAgent is an agent of a realm, as the realm describes it.
type ForeignAgent struct {
	Name, Description, Version string
	Capabilities               []Capability
}
