package schema

import (
	"strings"
	"testing"
)

func TestParams(t *testing.T) {
	p, err := CompileParams("price_of", []byte(`{"type":"object","properties":{
		"item":{"type":"string","minLength":1,"pattern":"^[a-z]+$"},"n":{"type":"integer","minimum":1,"maximum":9},
		"unit":{"enum":["kg",1]},"at":{"type":"string","format":"email"},"more":{"type":"object","additionalProperties":{"type":"number"}}},
		"required":["item"],"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"item":"tea"}`: "", `{"item":"tea","n":9,"unit":1,"at":"nobody","more":{"a":1.5}}`: "",
		`{}`:                              "item: is missing",
		`{"item":7}`:                      "item: must be a string, not a number",
		`{"item":"TEA"}`:                  "item: ",
		`{"item":"tea","n":10}`:           "n: ",
		`{"item":"tea","n":1.5}`:          "n: must be a number",
		`{"item":"tea","n":1e999999999}`:  "too large",
		`{"item":"tea","n":1e-999999999}`: "n: ",
		`{"item":"tea","unit":"lb"}`:      "unit: ",
		`{"item":"tea","more":{"a":""}}`:  "more.a: ",
		`{"item":"tea","x":1}`:            "x: is not a known key",
		`{"item":"tea","item":"tea"}`:     "occurs twice",
		`[]`:                              "must be an object",
		`{`:                               "not valid JSON",
	} {
		got := p.Check([]byte(args))
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %q", args, got, want)
		}
	}
}

// A schema that could not be checked, or would take too long, is refused at load.
func TestParamsThatAreRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`7`: "must be a JSON object", `null`: "must be a JSON object",
		`{"type":"array"}`: `"type": "object"`,
		`{"properties":{"a":{"$ref":"#/definitions/b"}}}`: "write the schema in its place",
		`{"definitions":{}}`:                              "write the schema in its place",
		`{"dependencies":{}}`:                             "is not a keyword that is known to work",
		`{"properties":{"a":{"pattern":"("}}}`:            "is no pattern",
		`{"properties":{"a":{"pattern":"(?:(?:ab?c?d?){100}){10}"},"b":{"pattern":"(?:(?:ab?c?d?){100}){10}"}}}`: "repeat more than can be checked",
		`{"properties":{"a":{"pattern":7}}}`:                                            "must be a text",
		`{"properties":{"a":{"type":"money"}}}`:                                         "money",
		`{"x":"` + strings.Repeat("x", maxParams) + `"}`:                                "at most 32768",
		`{"properties":{"a":{"pattern":"` + strings.Repeat("x", maxPatterns+1) + `"}}}`: "more than 1024 bytes",
	} {
		if _, err := CompileParams("a", []byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", schema, err, want)
		}
	}
}
