package mailtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"skep/spec/openapi"
)

// sampler makes values of the shapes that the description has, and others that
// almost are.
type sampler struct {
	doc *openapi.Document
	rng *rand.Rand
}

// chance is true once in n.
func (s *sampler) chance(n int) bool { return s.rng.IntN(n) == 0 }

func pick[T any](s *sampler, from ...T) T { return from[s.rng.IntN(len(from))] }

// value makes a value of a schema for a member of that name.
func (s *sampler) value(name string, schema any, depth int) any {
	m, _ := s.doc.Dig(schema).(map[string]any)
	if depth > 6 || s.chance(12) {
		return s.junk(depth)
	}
	if v, ok := m["const"]; ok {
		return v
	}
	if list, ok := m["enum"].([]any); ok {
		return pick(s, list...)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := m[key].([]any); ok && m["properties"] == nil {
			return s.value(name, pick(s, list...), depth+1)
		}
	}
	kind := m["type"]
	if kinds, ok := kind.([]any); ok {
		kind = pick(s, kinds...)
	}
	switch kind {
	case "string":
		return s.text(name)
	case "integer":
		return pick(s, 0, 1, 2, 50, -1, s.rng.IntN(1<<20))
	case "number":
		return pick(s, 0.5, 1, 30, -2, s.rng.Float64()*1e6)
	case "boolean":
		return s.chance(2)
	case "array":
		list := []any{}
		for range s.rng.IntN(4) {
			list = append(list, s.value(name, m["items"], depth+1))
		}
		return list
	case "object":
		return s.object(m, depth)
	case "null":
		return nil
	}
	return s.junk(depth)
}

func (s *sampler) object(m map[string]any, depth int) obj {
	o := obj{}
	required, _ := m["required"].([]any)
	properties, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) && !s.chance(15) || s.chance(2) {
			o[name] = s.value(name, properties[name], depth+1)
		}
	}
	for _, name := range required {
		if _, there := o[fmt.Sprint(name)]; !there && properties[fmt.Sprint(name)] == nil {
			o[fmt.Sprint(name)] = s.text("")
		}
	}
	if s.chance(8) {
		o[s.text("")] = s.junk(depth + 1)
	}
	return o
}

// text makes a text; some members have values that lead further. None leads to
// another machine.
func (s *sampler) text(name string) string {
	known := map[string][]string{
		"task_id": {"t1", "t2", "t3"}, "entrypoint": {"boss", "desk", "math"}, "agent": {"boss", "math"}, "targets": {"boss", "boss@hive", "a@depot"},
		"target_agent": {"boss"}, "source_swarm": {"depot"}, "target_swarm": {"hive"}, "task_owner": {"user:carol@depot"}, "previous_response_id": {"t1"},
		"task_contributors": {"user:carol@depot"}, "timestamp": {"2026-03-01T09:31:00Z"}, "name": {"depot", "hive"}, "tenant": {"acme"}, "role": {"user", "agent"},
		"before": {"2030-01-01T00:00:00Z"}, "Last-Event-ID": {"1"}, "after": {"1"}, "limit": {"5"}, "Prefer": {"respond-async", "respond-async, wait=1"},
	}[name]
	if name == "base_url" {
		return pick(s, "http://127.0.0.1:9", "http://localhost:9/", "http://[::1]:9/a", "ftp://127.0.0.1", "", "127.0.0.1", "http://", "http://127.0.0.1:9?a")
	}
	if len(known) > 0 && !s.chance(4) {
		return pick(s, known...)
	}
	return pick(s, "", "a", "hello", "null", "::task_complete::", "../../etc/passwd", "a b", "\x00", "\r\nX-Y: z", "\u202eabc", "😀", "a/b", "%2e%2e", "{}", "[]",
		`[["send_request",{"target":"math","subject":"s","body":"b"}],["await_message",{}]]`, strings.Repeat("x", s.rng.IntN(5000)), fmt.Sprint(s.rng.Uint64()))
}

func (s *sampler) junk(depth int) any {
	if depth > 6 {
		return nil
	}
	return pick[any](s, nil, true, 0, -1, 1e300, 1.5, "", s.text(""), []any{}, []any{nil, []any{}}, obj{}, obj{s.text(""): s.text("")})
}

// like is the example with at most one member changed, for a known task.
func (s *sampler) like(content any) any {
	example, _ := s.doc.Dig(content, "example").(map[string]any)
	schema := s.doc.Dig(content, "schema")
	properties, _ := s.doc.Dig(schema, "properties").(map[string]any)
	if list, ok := s.doc.Dig(schema, "anyOf").([]any); ok && properties == nil {
		properties, _ = s.doc.Dig(list[0], "properties").(map[string]any) // the example is of the first form
	}
	o := maps.Clone(example)
	if len(o) == 0 {
		return s.value("", schema, 0)
	}
	for _, name := range []string{"task_id", "base_url"} {
		if properties[name] != nil {
			o[name] = s.text(name)
		}
	}
	if s.chance(2) {
		name := pick(s, slices.Sorted(maps.Keys(properties))...)
		o[name] = s.value(name, properties[name], 0)
	}
	return o
}

// body makes a request's body: mostly JSON of the schema, sometimes damaged.
func (s *sampler) body(content any) string {
	made := s.like(content)
	if s.chance(2) {
		made = s.value("", s.doc.Dig(content, "schema"), 0)
	}
	raw, err := json.Marshal(made)
	if err != nil {
		return "{"
	}
	text := string(raw)
	switch s.rng.IntN(20) {
	case 0:
		return text[:s.rng.IntN(len(text)+1)]
	case 1:
		at := s.rng.IntN(len(text) + 1)
		return text[:at] + pick(s, "\xff", `"`, "}", "\x00", `,"body":1,"body":2`) + text[at:]
	case 2:
		return strings.Repeat("[", s.rng.IntN(200)) + text
	case 3:
		return ""
	}
	return text
}

// target makes a path with its query.
func (s *sampler) target(op *openapi.Operation) (target string, header map[string]string) {
	target, header = op.Path, map[string]string{}
	query := url.Values{}
	parameters, _ := op.Spec["parameters"].([]any)
	for _, p := range parameters {
		m, _ := s.doc.Dig(p).(map[string]any)
		name, _ := m["name"].(string)
		text := fmt.Sprint(s.value(name, m["schema"], 5))
		if s.doc.Dig(m["schema"], "type") == "string" {
			text = s.text(name)
		}
		switch {
		case m["in"] == "path":
			if text == "" {
				text = "t1"
			}
			target = strings.Replace(target, "{"+name+"}", url.PathEscape(text), 1)
		case m["required"] != true && s.chance(2):
		case m["in"] == "query":
			query.Set(name, text)
		case !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
			header[name] = text
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target, header
}
