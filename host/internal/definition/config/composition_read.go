package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonReader turns JSON into the values and nodes that the grammar is read from.
type jsonReader struct {
	dec   *json.Decoder
	nodes int
}

// errJSON is a fault of the JSON at a place that readJSON knows.
type errJSON struct{ path, text string }

func (e errJSON) Error() string { return e.text }

// readJSON reads one object. Every key has one reading: none may stand twice.
// What the host has written itself has no bound.
func readJSON(src *source, own bool) (map[string]any, *node, *Fault) {
	fault := func(offset int64, path, text string) (map[string]any, *node, *Fault) {
		f := src.fault(int(offset), path, text)
		return nil, nil, &f
	}
	if len(src.text) > maxComposition && !own {
		return fault(0, "", fmt.Sprintf("the definition has more than %d bytes", maxComposition))
	}
	if !utf8.ValidString(src.text) {
		return fault(0, "", "the definition is not UTF-8 text")
	}
	if !own && isReferenceSwarm([]byte(src.text)) {
		return fault(0, "", "this is a swarm in the form of the MAIL reference, whose agents are Python factories; write them into swarm.toml as [agents.NAME], "+
			"each with a source that runs here, and load a definition in the form that GET /skep/v1/definition shows")
	}
	r := &jsonReader{dec: json.NewDecoder(strings.NewReader(src.text))}
	r.dec.UseNumber()
	root := &node{}
	v, err := r.value(root, "", 0)
	values, isObject := v.(map[string]any)
	if err == nil && !isObject {
		err = errJSON{"", "the definition must be a JSON object"}
	}
	if err == nil {
		if _, after := r.dec.Token(); !errors.Is(after, io.EOF) {
			err = errJSON{"", "there is more after the definition"}
		}
	}
	var bad errJSON
	switch {
	case errors.As(err, &bad):
		return fault(r.dec.InputOffset(), bad.path, bad.text)
	case err != nil:
		return fault(r.dec.InputOffset(), "", "the definition is not JSON: "+err.Error())
	}
	return values, root, nil
}

func (r *jsonReader) value(n *node, path string, depth int) (any, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, errJSON{path, fmt.Sprintf("the definition has more than %d values", maxNodes)}
	}
	if depth > maxDepth || len(path) > maxPath {
		return nil, errJSON{path, fmt.Sprintf("the definition is nested deeper than %d levels, or has names that are too long", maxDepth)}
	}
	n.key = int(r.dec.InputOffset())
	n.value = n.key
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return r.object(n, path, depth)
		}
		return r.array(n, path, depth)
	case json.Number:
		return number(t, path)
	case nil:
		if path == "" {
			return nil, errJSON{"", "the definition is null; it must be a JSON object"}
		}
		return nil, errJSON{path, path + " is null; leave it out instead"}
	}
	return t, nil
}

func (r *jsonReader) object(n *node, path string, depth int) (any, error) {
	values := map[string]any{}
	n.children = map[string]*node{}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the decoder takes nothing else
		at := strings.TrimPrefix(path+"."+quoteKey(name), ".")
		if n.children[name] != nil {
			return nil, errJSON{at, at + " stands twice"}
		}
		sub := &node{}
		n.names, n.children[name] = append(n.names, name), sub
		if values[name], err = r.value(sub, at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := r.dec.Token()
	return values, err
}

func (r *jsonReader) array(n *node, path string, depth int) (any, error) {
	values := []any{}
	for r.dec.More() {
		sub := &node{}
		n.elems = append(n.elems, sub)
		v, err := r.value(sub, path+"["+strconv.Itoa(len(values))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := r.dec.Token()
	return values, err
}

// number is a whole number where it is written as one.
func number(text json.Number, path string) (any, error) {
	if n, err := text.Int64(); err == nil {
		return n, nil
	}
	f, err := text.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, errJSON{path, path + " is a number that is too large"}
	}
	return f, nil
}

// isReferenceSwarm reports whether a text is a swarm in the reference's own form, or a
// list of them as its file has: agents stand in a list there.
func isReferenceSwarm(text []byte) bool {
	type swarm struct{ Agents []json.RawMessage }
	var one swarm
	var list []swarm
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		one = list[0]
	} else if json.Unmarshal(text, &one) != nil {
		return false
	}
	return one.Agents != nil
}
