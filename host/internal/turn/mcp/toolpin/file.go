package toolpin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of a file.
const (
	MaxFile  = 4 << 20 // bytes
	MaxTools = 512
)

// version is the version of the file format.
const version = 1

// file is the JSON of the file.
type file struct {
	Schema int    `json:"schema"`
	Server string `json:"server"`
	Tools  []Tool `json:"tools"`
}

// Encode writes the file of a server; equal tools give equal bytes. Invisible characters
// are escaped, so that an operator sees everything that is approved.
func Encode(server string, tools []Tool) ([]byte, error) {
	sorted := slices.Clone(tools)
	slices.SortFunc(sorted, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file{version, server, append([]Tool{}, sorted...)}); err != nil {
		return nil, err
	}
	if b.Len() > MaxFile || len(tools) > MaxTools {
		return nil, fmt.Errorf("the pins of %q have %d bytes and %d tools, at most %d and %d", server, b.Len(), len(tools), MaxFile, MaxTools)
	}
	return []byte(visible(b.String())), nil
}

// visible escapes the invisible characters in a JSON document.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Decode reads the file of a server. Each digest must match its definition: a definition
// edited by hand is not approved.
func Decode(server string, raw []byte) ([]Tool, error) {
	if len(raw) > MaxFile {
		return nil, fmt.Errorf("has %d bytes, at most %d", len(raw), MaxFile)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("is not UTF-8 text")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var f file
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("is not a file of pins: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more after its end")
	}
	switch {
	case f.Schema != version:
		return nil, fmt.Errorf("has schema %d, this version of skep reads %d", f.Schema, version)
	case f.Server != server:
		return nil, fmt.Errorf("pins the tools of server %.64q, not of %q", f.Server, server)
	case len(f.Tools) > MaxTools:
		return nil, fmt.Errorf("has %d tools, at most %d", len(f.Tools), MaxTools)
	}
	return checkTools(f.Tools)
}

// checkTools normalizes definitions and checks their digests.
func checkTools(tools []Tool) ([]Tool, error) {
	seen := map[string]bool{}
	for i, t := range tools {
		again, err := New(t.Name, t.Description, t.InputSchema, t.Annotations)
		switch {
		case err != nil:
			return nil, err
		case seen[t.Name]:
			return nil, fmt.Errorf("has tool %q twice", t.Name)
		case again.SHA256 != t.SHA256:
			return nil, fmt.Errorf("has another definition of tool %q than its sha256 says", t.Name)
		}
		seen[t.Name] = true
		tools[i] = again
	}
	return tools, nil
}

// Find returns the tool with a name.
func Find(tools []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}

// Merge replaces tools of the same name and adds the others.
func Merge(had, tools []Tool) []Tool {
	out := slices.DeleteFunc(slices.Clone(had), func(t Tool) bool {
		_, replaced := Find(tools, t.Name)
		return replaced
	})
	out = append(out, tools...)
	slices.SortFunc(out, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
