package schema_test

import (
	"testing"

	"skep/host/internal/schema"
)

// A fault of a number names what it may be.
func TestSettings(t *testing.T) {
	t.Parallel()
	p, err := schema.CompileSettings("a module/1", []byte(`{"properties":{
		"a":{"minimum":1,"maximum":100},"b":{"exclusiveMinimum":0.5,"exclusiveMaximum":2},"c":{"type":"object","additionalProperties":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		`{"a":1,"b":1,"c":{}}`: "",
		`{"a":0}`:              "a: must be 1 or more",
		`{"a":101}`:            "a: must be at most 100",
		`{"b":0.5}`:            "b: must be more than 0.5",
		`{"b":2}`:              "b: must be less than 2",
		`{"c":{"d":1}}`:        "c.d: is not a known key",
	} {
		got := ""
		if err := p.Check([]byte(raw)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	if _, err := schema.CompileSettings("m", []byte(`{"$defs":{}}`)); err == nil || err.Error() != "schema of params m at #/$defs: is not taken; write the schema in its place" {
		t.Errorf("%v", err)
	}
}
