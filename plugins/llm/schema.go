package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that catches what models get wrong: a missing
// or invented member, a wrong type, a value that is not offered. The host checks
// the whole.
type schema struct {
	Type       oneOrMore          `json:"type"`
	Enum       []any              `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Additional json.RawMessage    `json:"additionalProperties"`
	Items      *schema            `json:"items"`
}

// oneOrMore is a text or a list of texts.
type oneOrMore []string

// UnmarshalJSON takes both forms.
func (o *oneOrMore) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

// check returns what is wrong with a value; at is its place, empty for the whole.
func (s *schema) check(at string, v any) error {
	if s == nil {
		return nil
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(t string) bool { return is(t, v) }) {
		return fmt.Errorf("%s must be of type %s", place(at), strings.Join(s.Type, " or "))
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		offered, err := json.Marshal(s.Enum)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s must be one of %s", place(at), offered)
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkMembers(at, v)
	case []any:
		for i, item := range v {
			if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *schema) checkMembers(at string, members map[string]any) error {
	for _, name := range s.Required {
		if _, ok := members[name]; !ok {
			return fmt.Errorf("%s is missing", member(at, name))
		}
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // the first fault is the same on every run
	for _, name := range names {
		of, known := s.Properties[name]
		if !known && string(s.Additional) == "false" {
			return fmt.Errorf("there is no %s", member(at, name))
		}
		if err := of.check(member(at, name), members[name]); err != nil {
			return err
		}
	}
	return nil
}

func member(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func place(at string) string {
	if at == "" {
		return "the whole"
	}
	return at
}

// is reports whether a decoded value has a type of JSON Schema. A type this reader
// does not know fits everything.
func is(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	}
	return kind == "object"
}
