package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is a description of an HTTP interface. It may be used by many
// goroutines at once.
type Document struct {
	root       map[string]any
	operations []*Operation
	schemas    map[string]*jsonschema.Schema
}

// Operation is a method of a path.
type Operation struct {
	Method, Path string
	// Spec is the operation as it is written; see [Document.Dig].
	Spec map[string]any
}

// String is "METHOD path".
func (o *Operation) String() string { return o.Method + " " + o.Path }

// Open reports whether the operation needs no key.
func (o *Operation) Open() bool {
	_, open := o.Spec["security"]
	return open
}

// Roles lists who may call the operation, as its x-roles have it.
func (o *Operation) Roles() (roles []string) {
	list, _ := o.Spec["x-roles"].([]any)
	for _, r := range list {
		roles = append(roles, fmt.Sprint(r))
	}
	return roles
}

// Statuses lists what the operation may answer, but for the unexpected.
func (o *Operation) Statuses() (all []string) {
	responses, _ := o.Spec["responses"].(map[string]any)
	for status := range responses {
		if status != "default" {
			all = append(all, status)
		}
	}
	slices.Sort(all)
	return all
}

// Parse reads a description and compiles its schemas. It takes the part of YAML
// that spec/openapi.yaml uses.
func Parse(raw []byte) (*Document, error) {
	v, err := parseYAML(raw)
	if err != nil {
		return nil, err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is a %T, not an object", v)
	}
	d := &Document{root: root, schemas: map[string]*jsonschema.Schema{}}
	paths, _ := root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods, _ := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			op, ok := methods[method].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s %s is no operation", method, path)
			}
			d.operations = append(d.operations, &Operation{strings.ToUpper(method), path, op})
		}
	}
	return d, d.compile()
}

// Root is the document itself, to begin with; it must not be changed.
func (d *Document) Root() map[string]any { return d.root }

// Operations lists the operations by path and method.
func (d *Document) Operations() []*Operation { return d.operations }

// Operation returns the one called "METHOD path", or nil.
func (d *Document) Operation(name string) *Operation {
	i := slices.IndexFunc(d.operations, func(o *Operation) bool { return o.String() == name })
	if i < 0 {
		return nil
	}
	return d.operations[i]
}

// Find returns the operation that serves an escaped path, and what stands in
// the path's variables; nil if none does. A path written out goes before one
// with variables.
func (d *Document) Find(method, path string) (found *Operation, vars map[string]string) {
	for _, o := range d.operations {
		if o.Method != method {
			continue
		}
		if o.Path == path {
			return o, nil
		}
		if got, ok := match(o.Path, path); ok {
			found, vars = o, got
		}
	}
	return found, vars
}

func match(pattern, path string) (map[string]string, bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	vars := map[string]string{}
	for i, w := range want {
		if name, ok := strings.CutPrefix(w, "{"); ok && have[i] != "" {
			vars[strings.TrimSuffix(name, "}")] = have[i]
		} else if w != have[i] {
			return nil, false
		}
	}
	return vars, true
}

// Dig follows keys from a part of the document, and references on the way; nil
// when it comes to nothing.
func (d *Document) Dig(from any, path ...string) any {
	for {
		m, ok := from.(map[string]any)
		if ref, is := m["$ref"].(string); is {
			from = d.Dig(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			continue
		}
		if len(path) == 0 || !ok {
			return from
		}
		from, path = m[path[0]], path[1:]
	}
}
