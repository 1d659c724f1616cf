package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/schema"
)

// pydantic is how a common library writes a tool with a nested argument.
const pydantic = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{
	"Tag":{"title":"Tag","type":"object","properties":{"name":{"type":"string","minLength":1},"level":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}},"required":["name"]},
	"Place":{"type":"object","properties":{"tags":{"type":"array","items":{"$ref":"#/$defs/Tag"}},"a/b":{"$ref":"#/$defs/deep/$defs/x~1y"}},"additionalProperties":false},
	"deep":{"$defs":{"x/y":{"type":"boolean"}}}},
	"type":"object","title":"putArguments","x-order":["place"],
	"properties":{"place":{"$ref":"#/$defs/Place","description":"where"},"tag":{"$ref":"#/$defs/Tag","maxProperties":1},"$ref":{"type":"string","deprecated":true}},
	"required":["place"]}`

func TestCompileTool(t *testing.T) {
	t.Parallel()
	p, err := schema.CompileTool("put", []byte(pydantic))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"place":{}}`: "", `{"place":{"tags":[{"name":"a","level":1}],"a/b":true}}`: "", `{"place":{},"$ref":"x"}`: "",
		`{}`: "place", `{"place":{"tags":[{}]}}`: "name", `{"place":{"tags":[{"name":""}]}}`: "name", `{"place":{"a/b":1}}`: "a/b",
		`{"place":{"more":1}}`: "more", `{"place":{},"tag":{"name":"a","level":1}}`: "tag", `[]`: "object", `{"place":{},"place":{}}`: "twice",
	} {
		err := p.Check([]byte(args))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestCompileToolRefuses(t *testing.T) {
	t.Parallel()
	grows := `{"$defs":{"a0":{"type":"string"}`
	for i := 1; i < 30; i++ {
		grows += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	chain := `{"$defs":{"a0":{}`
	for i := 1; i < 50; i++ {
		chain += fmt.Sprintf(`,"a%d":{"$ref":"#/$defs/a%d"}`, i, i-1)
	}
	for text, want := range map[string]string{
		`[]`: "must be a JSON object", `{"type":"array"}`: `"type": "object"`,
		`{"properties":{"a":{"$ref":"https://x.example/s.json"}}}`:                                             "nothing is fetched",
		`{"properties":{"a":{"$ref":"other.json#/x"}}}`:                                                        "nothing is fetched",
		`{"properties":{"a":{"$ref":7}}}`:                                                                      "nothing is fetched",
		`{"properties":{"a":{"$ref":"#"}}}`:                                                                    "leads to itself",
		`{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"a":{"$ref":"#/$defs/n"}}}`: "leads to itself",
		`{"properties":{"a":{"$ref":"#/$defs/none"}}}`:                                                         "leads to no schema",
		`{"properties":{"a":{"$ref":"#anchor"}}}`:                                                              "leads to no schema",
		`{"properties":{"a":{"$ref":"#/%zz"}}}`:                                                                "is none",
		`{"properties":{"a":{"$dynamicRef":"#x"}}}`:                                                            "$dynamicRef",
		`{"unevaluatedProperties":false}`:                                                                      "unevaluatedProperties",
		`{"properties":{"a":{"prefixItems":[{}]}}}`:                                                            "prefixItems",
		grows + `},"properties":{"a":{"$ref":"#/$defs/a29"}}}`:                                                 "more than 4000 parts",
		chain + `},"properties":{"a":{"$ref":"#/$defs/a49"}}}`:                                                 "lead on 32 times",
		`{"properties":{"a":{"pattern":"("}}}`:                                                                 "is no pattern",
		`{"description":"` + strings.Repeat("x", 70<<10) + `"}`:                                                "at most 65536",
	} {
		if _, err := schema.CompileTool("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// FuzzCompileTool wants a verdict soon, whatever strangers write.
func FuzzCompileTool(f *testing.F) {
	f.Add([]byte(pydantic), []byte(`{"place":{}}`))
	f.Add([]byte(`{"properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":{}}}`))
	f.Fuzz(func(_ *testing.T, text, args []byte) {
		if p, err := schema.CompileTool("t", text); err == nil {
			_ = p.Check(args)
		}
	})
}
