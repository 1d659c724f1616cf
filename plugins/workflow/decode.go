package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// depthOf is how deep the arrays and objects of a JSON text nest. It reads no values.
func depthOf(raw []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case b == '"':
			quoted = !quoted
		case quoted && b == '\\':
			i++
		case quoted:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

// decodeJSON reads a value whose numbers are float64.
func decodeJSON(raw []byte) (v any, err error) {
	err = json.Unmarshal(raw, &v)
	return v, err
}

// encodeJSON writes a value without escapes for HTML.
func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// typeFault names the member of the wrong type, without Go's types.
func typeFault(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return wrong.Field + " must not be a JSON " + wrong.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
