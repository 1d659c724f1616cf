package gen

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// unseen are refusals that no schema can give: of the text, and of how a number is
// written.
func unseen(c sample) bool {
	return strings.HasPrefix(c.want, "the text") || strings.Contains(c.want, "whole number") && (strings.Contains(c.text, "1.0") || strings.Contains(c.text, "1e2")) ||
		strings.Contains(c.want, "number of 64 bits") && (strings.Contains(c.text, "1e309") || strings.Contains(c.text, "1e400"))
}

// A-066, V-A37: the schema accepts and refuses what the generated codecs do, but for what
// a schema does not see.
func TestJSONSchema(t *testing.T) {
	t.Parallel()
	s := load(t, "agreement.acp", agreementText(t))
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(generate(t, "jsonschema", s)[0].Text))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("mem:agreement", doc); err != nil {
		t.Fatal(err)
	}
	schemas, tried := map[string]*jsonschema.Schema{}, 0
	for _, one := range samples() {
		if unseen(one) {
			continue
		}
		tried++
		schema := schemas[one.typ]
		if schema == nil {
			if schema, err = c.Compile("mem:agreement#/$defs/" + one.typ); err != nil {
				t.Fatal(err)
			}
			schemas[one.typ] = schema
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(one.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != (one.want == "") {
			t.Errorf("%s %.200s: %v, want %q", one.typ, one.text, err, one.want)
		}
	}
	if tried < 140 {
		t.Errorf("only %d samples were tried", tried)
	}
	if _, err := c.Compile("mem:agreement"); err != nil {
		t.Error(err)
	}
}
