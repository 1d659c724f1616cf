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

// maxStrict is how deep a schema may be nested that is enforced. OpenAI refuses
// deeper ones.
const maxStrict = 10

// strict reports whether a schema is of the part that OpenAI enforces to the
// letter. It refuses a strict schema that is not; without strict, it takes every
// schema as a wish.
func strict(schema json.RawMessage) bool {
	var node any
	return json.Unmarshal(schema, &node) == nil && enforced(node, maxStrict)
}

// enforced reads a schema that is decoded once: it is a guest's, and reading each
// of its levels anew would keep the host busy for a guest that pays nothing for it.
func enforced(schema any, depth int) bool {
	node, ok := schema.(map[string]any)
	if !ok || depth == 0 {
		return false
	}
	for key := range node {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "title", "description"}, key) {
			return false
		}
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	if node["type"] == "object" && (node["additionalProperties"] != false || len(required) != len(properties)) {
		return false
	}
	named := map[string]bool{}
	for _, name := range required {
		text, _ := name.(string)
		named[text] = true
	}
	for name, inner := range properties {
		if !named[name] || !enforced(inner, depth-1) {
			return false
		}
	}
	anyOf, _ := node["anyOf"].([]any)
	for _, inner := range anyOf {
		if !enforced(inner, depth-1) {
			return false
		}
	}
	items, there := node["items"]
	return !there || enforced(items, depth-1)
}
