package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// base is the name under which references within the document are resolved. It
// is never fetched.
const base = "urn:skep:openapi"

// compile compiles every schema of the document, so that a broken one is found
// before it is asked for a verdict.
func (d *Document) compile() error {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(base, d.root); err != nil {
		return err
	}
	var fault error
	d.walk(d.root, "", func(at string, node map[string]any) {
		if node["schema"] == nil || fault != nil {
			return
		}
		d.schemas[at], fault = c.Compile(base + "#" + at + "/schema")
	})
	components, _ := d.Dig(d.root, "components", "schemas").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(components)) {
		if fault != nil {
			break
		}
		d.schemas["/components/schemas/"+name], fault = c.Compile(base + "#/components/schemas/" + escape(name))
	}
	return fault
}

// walk visits the objects of the document, each with its JSON pointer. It does
// not enter examples and schemas.
func (d *Document) walk(v any, at string, visit func(at string, node map[string]any)) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			d.walk(e, fmt.Sprint(at, "/", i), visit)
		}
	case map[string]any:
		visit(at, v)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k != "schema" && k != "schemas" && k != "example" && k != "examples" {
				d.walk(v[k], at+"/"+escape(k), visit)
			}
		}
	}
}

// escape writes a key as a step of a JSON pointer in a fragment.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", " ", "%20").Replace(key)
}

// Schema returns a verdict by a schema of components: nil if a JSON text is
// valid.
func (d *Document) Schema(name string, text []byte) error {
	return d.verdict("/components/schemas/"+name, text)
}

// verdict judges a JSON text by the schema at a pointer.
func (d *Document) verdict(at string, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return d.judge(at, v)
}

func (d *Document) judge(at string, v any) error {
	s, ok := d.schemas[at]
	if !ok {
		return fmt.Errorf("there is no schema at %s", at)
	}
	return s.Validate(v)
}

// Examples judges every example that stands beside a schema and returns how
// many there are.
func (d *Document) Examples() (n int, err error) {
	var faults []string
	d.walk(d.root, "", func(at string, node map[string]any) {
		if node["schema"] == nil || node["example"] == nil {
			return
		}
		n++
		if err := d.judge(at, node["example"]); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", at, err))
		}
	})
	if len(faults) > 0 {
		return n, fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return n, nil
}
