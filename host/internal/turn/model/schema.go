package model

import (
	"encoding/json"
	"slices"

	"skep/abi"
)

// toolParameters is a tool's schema; a tool without a schema takes no arguments.
func toolParameters(t abi.Tool) json.RawMessage {
	if len(t.Parameters) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}

// argumentsObject returns the arguments of a call as a JSON object, as providers require.
// Arguments that are not an object are wrapped, so that the model sees what it wrote.
func argumentsObject(arguments string) json.RawMessage {
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

// maxStrict is the maximum depth of an enforced schema. OpenAI refuses deeper ones.
const maxStrict = 10

// isStrict reports whether a schema is in the subset that OpenAI enforces
// (https://platform.openai.com/docs/guides/structured-outputs). OpenAI refuses other
// schemas in strict mode and takes them as a hint otherwise.
func isStrict(schema json.RawMessage) bool {
	var node any
	return json.Unmarshal(schema, &node) == nil && isEnforceable(node, maxStrict)
}

// isEnforceable walks a decoded schema. Decoding each level again would let a guest burn
// host CPU that nothing accounts for.
func isEnforceable(schema any, depth int) bool {
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
		if !named[name] || !isEnforceable(inner, depth-1) {
			return false
		}
	}
	anyOf, _ := node["anyOf"].([]any)
	for _, inner := range anyOf {
		if !isEnforceable(inner, depth-1) {
			return false
		}
	}
	items, there := node["items"]
	return !there || isEnforceable(items, depth-1)
}
