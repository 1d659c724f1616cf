package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// reference names a part of a step's end, as ${steps.ID.result.PATH} does.
type reference struct {
	Step string
	Path []string // status, or result and members below it
}

// parseReference reads what stands between ${ and }.
func parseReference(text string) (reference, error) {
	parts := strings.Split(text, ".")
	if len(parts) < 3 || parts[0] != "steps" || !isID(parts[1]) || parts[2] != "result" && (parts[2] != "status" || len(parts) > 3) {
		return reference{}, fmt.Errorf("${%.100s} is none of ${steps.ID.result}, ${steps.ID.result.MEMBER} and ${steps.ID.status}", text)
	}
	return reference{parts[1], parts[2:]}, nil
}

// isID reports whether a text can name a step.
func isID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// member goes down a path of members and places in arrays.
func member(v any, path []string) (any, error) {
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			below, ok := in[name]
			if !ok {
				return nil, fmt.Errorf("has no member %q", name)
			}
			v = below
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, fmt.Errorf("is an array of %d and has no %q", len(in), name)
			}
			v = in[i]
		default:
			return nil, fmt.Errorf("has no member %q: it is no object", name)
		}
	}
	return v, nil
}

// textReferences calls each for the references in a text.
func textReferences(text string, each func(reference)) error {
	_, err := fillText(text, func(r reference) (any, error) { each(r); return "", nil })
	return err
}

// fillText replaces the references in a text by their values. A text that is one
// reference becomes its value, of whatever type.
func fillText(text string, look func(reference) (any, error)) (any, error) {
	var out strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("} is missing behind ${")
		}
		ref, err := parseReference(name)
		if err != nil {
			return nil, err
		}
		value, err := look(ref)
		if err != nil {
			return nil, err
		}
		if before == "" && behind == "" && len(rest) == len(text) {
			return value, nil
		}
		if s, ok := value.(string); ok {
			out.WriteString(s)
		} else {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			out.Write(raw)
		}
		rest = behind
	}
}

// fill replaces the references in all texts of a JSON value. Names of members stay.
func fill(v any, look func(reference) (any, error)) (any, error) {
	switch v := v.(type) {
	case string:
		return fillText(v, look)
	case []any:
		for i := range v {
			below, err := fill(v[i], look)
			if err != nil {
				return nil, err
			}
			v[i] = below
		}
	case map[string]any:
		for _, name := range sortedKeys(v) {
			below, err := fill(v[name], look)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			v[name] = below
		}
	}
	return v, nil
}
