package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Bounds of a schema whose references were replaced by what they lead to.
const (
	maxForeign  = 64 << 10 // bytes, as it was written
	maxInlined  = 4000     // schemas and values
	maxInlining = 32       // references within each other
)

// CompileTool compiles the schema of a tool's arguments as programs write it for the
// Model Context Protocol: of draft 2020-12 or 7, with definitions. References within
// it are replaced by what they lead to; those that lead elsewhere or to themselves
// are refused, as is every keyword that would not be checked.
func CompileTool(name string, raw []byte) (*Params, error) {
	if len(raw) > maxForeign {
		return nil, fmt.Errorf("the schema has %d bytes, at most %d", len(raw), maxForeign)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil || doc == nil {
		return nil, errors.New("the schema must be a JSON object")
	}
	in := &inliner{root: doc}
	flat, err := in.schema("#", doc, nil)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"$schema", "$id", "$defs", "definitions"} {
		delete(flat, key)
	}
	return compileDoc("tool", name, flat)
}

type inliner struct {
	root map[string]any
	n    int
}

// count bounds what comes of it: definitions that lead to each other twice would
// grow beyond all bounds.
func (in *inliner) count(at string) error {
	if in.n++; in.n > maxInlined {
		return fmt.Errorf("the schema at %s: with its references replaced it has more than %d parts", at, maxInlined)
	}
	return nil
}

// schema copies one schema without references. within are those that are being
// replaced.
func (in *inliner) schema(at string, node map[string]any, within []string) (map[string]any, error) {
	if err := in.count(at); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(node)) {
		v, err := in.keyword(at+"/"+key, key, node[key], within)
		if err != nil {
			return nil, err
		}
		if key != "$ref" && v != nil {
			out[key] = v
		}
	}
	ref, ok := node["$ref"]
	if !ok {
		return out, nil
	}
	target, err := in.follow(at, ref, within)
	if err != nil {
		return nil, err
	}
	return both(target, out), nil
}

// keyword copies what a keyword has to say. Only where schemas stand are references
// references.
func (in *inliner) keyword(at, key string, v any, within []string) (any, error) {
	switch key {
	case "$defs", "definitions": // they go where they are referred to
		return nil, nil
	case "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType": // remarks
		return nil, nil
	case "properties", "patternProperties", "dependentSchemas":
		all, ok := v.(map[string]any)
		if !ok {
			return v, nil
		}
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			one, err := in.value(at+"/"+name, all[name], within)
			if err != nil {
				return nil, err
			}
			out[name] = one
		}
		return out, nil
	case "items", "additionalProperties", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "prefixItems", "contains", "propertyNames":
		return in.value(at, v, within)
	}
	if strings.HasPrefix(key, "x-") { // a remark of somebody's own
		return nil, nil
	}
	return v, in.count(at)
}

// value copies a schema or a list of them; true is one that everything fits.
func (in *inliner) value(at string, v any, within []string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return in.schema(at, v, within)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = in.value(fmt.Sprintf("%s/%d", at, i), e, within); err != nil {
				return nil, err
			}
		}
		return out, nil
	case bool:
		if v && !strings.HasSuffix(at, "/additionalProperties") {
			return map[string]any{}, nil
		}
	}
	return v, nil
}

// follow returns what a reference leads to, itself without references.
func (in *inliner) follow(at string, v any, within []string) (map[string]any, error) {
	ref, ok := v.(string)
	switch {
	case !ok || !strings.HasPrefix(ref, "#"):
		return nil, fmt.Errorf("the schema at %s: $ref %q leads out of it, and nothing is fetched", at, fmt.Sprint(v))
	case slices.Contains(within, ref):
		return nil, fmt.Errorf("the schema at %s: $ref %q leads to itself", at, ref)
	case len(within) == maxInlining:
		return nil, fmt.Errorf("the schema at %s: references lead on %d times", at, maxInlining)
	}
	var target any = in.root
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		name, err := url.PathUnescape(part)
		if err != nil {
			return nil, fmt.Errorf("the schema at %s: $ref %q is none", at, ref)
		}
		members, _ := target.(map[string]any)
		target = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	node, ok := target.(map[string]any)
	if !ok || ref != "#" && !strings.HasPrefix(ref, "#/") {
		return nil, fmt.Errorf("the schema at %s: $ref %q leads to no schema", at, ref)
	}
	return in.schema(at, node, append(slices.Clone(within), ref))
}

// both is a schema of two schemas' demands.
func both(a, b map[string]any) map[string]any {
	says := slices.DeleteFunc(slices.Collect(maps.Keys(b)), func(key string) bool {
		return slices.Contains([]string{"title", "description", "default", "examples", "$comment"}, key)
	})
	if len(says) == 0 {
		return a
	}
	out := maps.Clone(b)
	list, _ := out["allOf"].([]any)
	out["allOf"] = append([]any{a}, list...)
	return out
}
