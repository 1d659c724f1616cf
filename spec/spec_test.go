package spec_test

import (
	"encoding/json"
	"testing"

	"skep/spec"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	for _, name := range []string{spec.CoreSchema, spec.InterswarmSchema, spec.ToolsSchema} {
		raw, err := spec.Schema(name)
		if err != nil || !json.Valid(raw) {
			t.Errorf("Schema(%q): error %v, valid JSON %v", name, err, json.Valid(raw))
		}
	}
	if _, err := spec.Schema("none.json"); err == nil {
		t.Error(`Schema("none.json") gave no error`)
	}
}
