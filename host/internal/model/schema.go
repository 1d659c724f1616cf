package model

import (
	"encoding/json"
	"slices"

	"skep/abi"
)

// parameters is a tool's schema; a tool without one takes nothing.
func parameters(t abi.Tool) json.RawMessage {
	if len(t.Parameters) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}

// object is a call's arguments as JSON of an object, as providers want them back.
// What is none is shown to the model as it wrote it.
func object(arguments string) json.RawMessage {
	if arguments == "" {
		return json.RawMessage(`{}`)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) == nil && fields != nil {
		return json.RawMessage(arguments)
	}
	raw, err := json.Marshal(map[string]string{"invalid_arguments": arguments})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// strict reports whether a schema is of the part that OpenAI enforces to the
// letter. It refuses a strict schema that is not; without strict, it takes every
// schema as a wish.
func strict(schema json.RawMessage) bool {
	var node struct {
		Type       json.RawMessage            `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		More       json.RawMessage            `json:"additionalProperties"`
		Items      json.RawMessage            `json:"items"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(schema, &node) != nil || json.Unmarshal(schema, &keys) != nil {
		return false
	}
	for key := range keys {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "title", "description"}, key) {
			return false
		}
	}
	if string(node.Type) == `"object"` && (string(node.More) != "false" || len(node.Required) != len(node.Properties)) {
		return false
	}
	for name, inner := range node.Properties {
		if !slices.Contains(node.Required, name) || !strict(inner) {
			return false
		}
	}
	for _, inner := range node.AnyOf {
		if !strict(inner) {
			return false
		}
	}
	return len(node.Items) == 0 || strict(node.Items)
}
