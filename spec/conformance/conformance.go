// Package conformance owns the test vectors that decide what a valid MAIL message
// is and what an agent module must bear, in a form that any language can read:
// documents, edits of them as JSON Patch (RFC 6902), and what must come of each.
// It must not know any implementation; those that claim to conform run all
// vectors. README.md describes the files.
package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed *.json
var files embed.FS

// Vector is one document and the verdict on it.
type Vector struct {
	Name string
	IDs  []string // the requirements it tests
	Raw  []byte   // the document, which need not be JSON
	// Fault is empty if the document is valid. Else it is the path of the field at
	// fault, "." for the document as a whole, or "*" where readers may differ in
	// what they stumble over first.
	Fault string
}

// Messages returns the vectors for messages.
func Messages() ([]Vector, error) { return load("messages.json") }

// Interswarm returns the vectors for the wrapper between swarms.
func Interswarm() ([]Vector, error) { return load("interswarm.json") }

// suite is the form of a vector file.
type suite struct {
	Valid   map[string]json.RawMessage `json:"valid"`
	Vectors []struct {
		Name  string   `json:"name"`
		IDs   []string `json:"ids"`
		Base  string   `json:"base"` // a key of Valid, edited by Patch …
		Patch []edit   `json:"patch"`
		Text  *string  `json:"text"` // … or the document itself
		Fault string   `json:"fault"`
	} `json:"vectors"`
}

// edit is one operation of RFC 6902: add, replace or remove.
type edit struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func load(name string) ([]Vector, error) {
	raw, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s suite
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []Vector
	for _, k := range slices.Sorted(maps.Keys(s.Valid)) {
		all = append(all, Vector{Name: k, Raw: s.Valid[k]})
	}
	for _, v := range s.Vectors {
		out := Vector{Name: v.Name, IDs: v.IDs, Fault: v.Fault}
		if v.Text != nil {
			out.Raw = []byte(*v.Text)
		} else if out.Raw, err = apply(s.Valid[v.Base], v.Patch); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, v.Name, err)
		}
		all = append(all, out)
	}
	return all, nil
}

func apply(base []byte, patches ...[]edit) ([]byte, error) {
	var doc any
	if err := json.Unmarshal(base, &doc); err != nil {
		return nil, err
	}
	for _, e := range slices.Concat(patches...) {
		if !e.in(doc) {
			return nil, fmt.Errorf("%s %s leads nowhere", e.Op, e.Path)
		}
	}
	return json.Marshal(doc)
}

// in applies e, whose path must not be the root, and reports success. A path may
// lead through arrays but not add to or remove from one.
func (e edit) in(doc any) bool {
	steps := strings.Split(e.Path, "/")[1:]
	last := len(steps) - 1
	for _, step := range steps[:last] {
		switch node := doc.(type) {
		case map[string]any:
			doc = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(node) {
				return false
			}
			doc = node[i]
		}
	}
	node, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	_, there := node[steps[last]]
	switch e.Op {
	case "remove":
		delete(node, steps[last])
		return there
	case "replace", "add":
		node[steps[last]] = e.Value
		return there == (e.Op == "replace")
	}
	return false
}
