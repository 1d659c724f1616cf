package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// textMembers are where a result keeps its text, first come first served.
var textMembers = []string{"value", "body", "text", "data", "content", "sha256"}

// resultText is what {{N}} stands for: the result's text where it has one,
// else the result as compact JSON.
func resultText(raw json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, name := range textMembers {
			if m := members[name]; len(m) > 0 && m[0] == '"' {
				return decodeString(m)
			}
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	return compact.String()
}

// substitute replaces {{N}} in every string value of args by the N-th text.
// It works on decoded strings and reads no replacement a second time. Member
// names, numbers and whatever has no placeholder stay byte for byte.
func substitute(args json.RawMessage, texts []string) json.RawMessage {
	if len(texts) == 0 {
		return args
	}
	var out []byte
	for i := 0; i < len(args); {
		if args[i] != '"' {
			out = append(out, args[i])
			i++
			continue
		}
		end := stringEnd(args, i)
		out = append(out, replaced(args, i, end, texts)...)
		i = end
	}
	return out
}

// replaced returns the string literal args[start:end] with its placeholders
// filled, or as it is when it names a member.
func replaced(args json.RawMessage, start, end int, texts []string) []byte {
	literal := args[start:end]
	if rest := bytes.TrimLeft(args[end:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
		return literal
	}
	before := decodeString(literal)
	after := fill(before, texts)
	if after == before {
		return literal
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(after) != nil { // a string always encodes
		return literal
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// fill replaces every {{N}} of s; an N that names no earlier call stays.
func fill(s string, texts []string) string {
	var out strings.Builder
	for {
		open := strings.Index(s, "{{")
		if open < 0 {
			break
		}
		out.WriteString(s[:open])
		s = s[open:]
		digits := strings.TrimLeft(s[2:], "0123456789")
		number := s[2 : len(s)-len(digits)]
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(texts) || !strings.HasPrefix(digits, "}}") {
			out.WriteByte('{') // what follows may still begin a placeholder
			s = s[1:]
			continue
		}
		out.WriteString(texts[n])
		s = digits[2:]
	}
	out.WriteString(s)
	return out.String()
}

// stringEnd returns the index behind the string literal that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

func decodeString(literal []byte) string {
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return string(literal)
	}
	return s
}
