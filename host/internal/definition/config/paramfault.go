package config

import (
	"slices"
	"strconv"
	"strings"

	"skep/host/internal/spelling"
)

// Steps parts the path of a member as package mail spells it: names are strings,
// indexes ints. What cannot be read, as a name that was cut, ends it.
func Steps(path string) (steps []any) {
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		inner, quoted := strings.CutPrefix(path, "[")
		if !quoted {
			n := strings.IndexAny(path, ".[")
			if n < 0 {
				n = len(path)
			}
			if n == 0 {
				return steps
			}
			steps, path = append(steps, path[:n]), path[n:]
			continue
		}
		text, err := strconv.QuotedPrefix(inner)
		rest := inner[len(text):]
		if err != nil {
			n := max(0, strings.Index(inner, "]"))
			text, rest = inner[:n], inner[n:]
		}
		path = strings.TrimPrefix(rest, "]")
		if path == rest {
			return steps
		}
		if name, err := strconv.Unquote(text); err == nil {
			steps = append(steps, name)
		} else if i, err := strconv.Atoi(text); err == nil {
			steps = append(steps, i)
		} else {
			return steps
		}
	}
	return steps
}

// ParamFault makes a fault of a member of the params of an agent or action. Known
// are the names that an unknown one may stand for; it is nil for other faults.
func (c *Config) ParamFault(section, name string, steps []any, reason string, known []string) Fault {
	at := location{node: c.root}.child(section).child(name).child("params")
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			at = at.child(step)
		case int:
			at = at.elem(step)
		}
	}
	f := Fault{File: c.File, Line: 1, Col: 1, Path: at.path, Message: at.path + " " + reason}
	if c.src != nil && c.root != nil {
		offset := at.node.value
		if known != nil || at.absent {
			offset = at.node.key
		}
		f = c.src.fault(offset, at.path, f.Message)
	}
	if last, ok := lastName(steps); ok {
		slices.Sort(known)
		f.Suggestion = spelling.Nearest(last, known)
	}
	return f
}

func lastName(steps []any) (name string, ok bool) {
	if len(steps) > 0 {
		name, ok = steps[len(steps)-1].(string)
	}
	return name, ok
}
