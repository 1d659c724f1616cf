package openapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// yaml reads as much of YAML as spec/openapi.yaml uses: block mappings and
// sequences, plain and quoted scalars, literal text, JSON, and flow sequences of
// plain scalars. All else is an error: it panics, and parseYAML says where.
type yaml struct {
	lines []string
	at    int
}

func parseYAML(raw []byte) (v any, err error) {
	y := &yaml{lines: strings.Split(string(raw), "\n")}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("line %d: %v", y.at+1, p)
		}
	}()
	v = y.block(0)
	if _, ok := y.peek(); ok {
		return nil, fmt.Errorf("line %d: wrong indentation", y.at+1)
	}
	return v, nil
}

// peek returns the indentation of the next line that says something.
func (y *yaml) peek() (indent int, ok bool) {
	for ; y.at < len(y.lines); y.at++ {
		if s := strings.TrimLeft(y.lines[y.at], " "); s != "" && s[0] != '#' {
			return len(y.lines[y.at]) - len(s), true
		}
	}
	return 0, false
}

// block reads a mapping or sequence that is indented by just so much.
func (y *yaml) block(indent int) any {
	if strings.HasPrefix(y.lines[y.at][indent:], "- ") {
		return y.sequence(indent)
	}
	m := map[string]any{}
	for {
		at, ok := y.peek()
		if !ok || at < indent {
			return m
		}
		if at > indent {
			panic("wrong indentation")
		}
		key, rest := splitKey(y.lines[y.at][indent:])
		if _, twice := m[key]; twice {
			panic("a key occurs twice: " + key)
		}
		y.at++
		m[key] = y.value(indent, rest)
	}
}

func (y *yaml) sequence(indent int) any {
	list := []any{}
	for {
		at, ok := y.peek()
		if !ok || at < indent {
			return list
		}
		line := y.lines[y.at]
		if at > indent || !strings.HasPrefix(line[indent:], "- ") {
			panic("expected an element")
		}
		if rest := line[indent+2:]; rest[0] == '{' || !strings.Contains(rest, ": ") {
			y.at++
			list = append(list, scalar(rest))
			continue
		}
		y.lines[y.at] = line[:indent] + "  " + line[indent+2:]
		list = append(list, y.block(indent+2))
	}
}

// value reads what stands behind a key, or below it.
func (y *yaml) value(indent int, rest string) any {
	switch rest {
	case "":
		if at, ok := y.peek(); ok && at > indent {
			return y.block(at)
		}
		return nil
	case "|":
		var text []string
		for ; y.at < len(y.lines); y.at++ {
			line := y.lines[y.at]
			if trimmed := strings.TrimLeft(line, " "); trimmed != "" && len(line)-len(trimmed) <= indent {
				break
			}
			text = append(text, strings.TrimSpace(line))
		}
		return strings.TrimRight(strings.Join(text, "\n"), "\n") + "\n"
	}
	return scalar(rest)
}

func splitKey(line string) (key, rest string) {
	if line[0] == '"' {
		end := strings.Index(line[1:], `"`) + 1
		key, line = line[1:end], line[end+1:]
	} else {
		end := strings.Index(line+" ", ": ")
		if end < 0 {
			panic("no key")
		}
		key, line = line[:end], line[end:]
	}
	return key, strings.TrimSpace(strings.TrimPrefix(line, ":"))
}

func scalar(text string) any {
	var v any
	switch {
	case text[0] == '{' || text[0] == '"' || text[0] == '[' && json.Valid([]byte(text)):
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(err)
		}
		return v
	case text[0] == '[':
		list := []any{}
		for part := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
			list = append(list, scalar(strings.TrimSpace(part)))
		}
		return list
	case text == "true" || text == "false":
		return text == "true"
	case text == "null":
		return nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	if strings.ContainsAny(text, "&*!|>%@`") || strings.Contains(text, ": ") || strings.Contains(text, " #") {
		panic("this scalar must be quoted: " + text)
	}
	return text
}
