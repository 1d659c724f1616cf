package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed deviations.json
var deviationsJSON []byte

// Deviation is where this description differs from the published one of MAIL 1.3.
type Deviation struct {
	// Place is an operation, the body of its request or its answer with a status, and
	// the names of members, as in "GET / 200 swarm".
	Place string `json:"place"`
	// Kind is missing here, more than published, optional here, or of other types,
	// which are then Types.
	Kind   string   `json:"kind"`
	Types  []string `json:"types,omitempty"`
	Reason string   `json:"reason"`
}

// Deviations returns the known deviations.
func Deviations() (list []Deviation, err error) {
	dec := json.NewDecoder(bytes.NewReader(deviationsJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("deviations.json: %w", err)
	}
	return list, nil
}

// Place is what the description has at a place; see [Deviation].
type Place struct {
	Found, Required bool
	Types           []string
	// Members are those of an object, or of the objects in a list.
	Members map[string]any
}

// At returns what the description has at a place.
func (d *Document) At(place string) (Place, error) {
	words := strings.Fields(place)
	if len(words) < 2 {
		return Place{}, fmt.Errorf("%q is no place", place)
	}
	op := d.Operation(words[0] + " " + words[1])
	if op == nil || len(words) == 2 {
		return Place{Found: op != nil}, nil
	}
	from := d.Dig(op.Spec, "responses", words[2])
	if words[2] == "request" {
		from = d.Dig(op.Spec, "requestBody")
	}
	found := Place{Found: from != nil}
	schema := d.Dig(from, "content", "application/json", "schema")
	found.Members, _ = d.members(schema)
	for _, name := range words[3:] {
		members, required := d.members(schema)
		member, ok := members[name]
		if !ok {
			return Place{}, nil
		}
		schema = d.Dig(member)
		found = Place{Found: true, Required: slices.Contains(required, name), Types: d.types(schema)}
		found.Members, _ = d.members(schema)
	}
	return found, nil
}

// members returns the members of an object with those that are required, of all parts of
// its schema; of a list, those of its items.
func (d *Document) members(schema any) (members map[string]any, required []string) {
	s, _ := d.Dig(schema).(map[string]any)
	if items := s["items"]; items != nil {
		return d.members(items)
	}
	members = map[string]any{}
	own, _ := s["properties"].(map[string]any)
	maps.Copy(members, own)
	for _, name := range list(s["required"]) {
		required = append(required, fmt.Sprint(name))
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range list(s[key]) {
			more, needs := d.members(part)
			maps.Copy(members, more)
			if key == "allOf" {
				required = append(required, needs...)
			}
		}
	}
	return members, required
}

// types returns the types that a schema allows, sorted.
func (d *Document) types(schema any) (types []string) {
	s, _ := d.Dig(schema).(map[string]any)
	switch kind := s["type"].(type) {
	case string:
		types = append(types, kind)
	case []any:
		for _, one := range kind {
			types = append(types, fmt.Sprint(one))
		}
	}
	for _, value := range list(s["enum"]) {
		if s["type"] != nil {
			break
		}
		types = append(types, map[bool]string{true: "null", false: "string"}[value == nil])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, part := range list(s[key]) {
			types = append(types, d.types(part)...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}
