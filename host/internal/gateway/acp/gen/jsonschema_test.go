package gen

import (
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// unseen are refusals that no schema can give: of the text, and of how a number is
// written.
func unseen(c sample) bool {
	return strings.HasPrefix(c.want, "the text") || strings.Contains(c.want, "whole number") && (strings.Contains(c.text, "1.0") || strings.Contains(c.text, "1e2"))
}

// A-066, V-A37: the schema accepts and refuses what the generated codecs do, but for what
// a schema does not see. So it is where a $ also stands before a last line break, as in the
// regular expressions of Python: https://docs.python.org/3/library/re.html#regular-expression-syntax
func TestJSONSchema(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	t.Run("end of text", func(t *testing.T) { t.Parallel(); checkSchema(t, c) })
	python := jsonschema.NewCompiler()
	python.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		return regexp.Compile(strings.ReplaceAll(pattern, "$", `\n?$`))
	})
	t.Run("end of line", func(t *testing.T) { t.Parallel(); checkSchema(t, python) })
}

func checkSchema(t *testing.T, c *jsonschema.Compiler) {
	s := load(t, "agreement.acp", agreementText(t))
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
