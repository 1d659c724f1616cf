package schema

import (
	"encoding/json"
	"fmt"

	"github.com/xeipuuv/gojsonschema"

	"skep/spec"
)

// document reads an embedded schema.
func document(name string) (map[string]any, error) {
	raw, err := spec.Schema(name)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return doc, nil
}

// compile makes a validator of a linted root and the documents that it refers to.
//
// Each root gets a loader of its own, since a loader refuses to see an $id twice.
// The draft is set and not detected: the library knows no draft after 7 and would
// fall back to a mixture of old ones. The check against the meta-schema stays off;
// the lint is stricter, and the library would fetch it.
func compile(root map[string]any, others ...map[string]any) (*gojsonschema.Schema, error) {
	registerFormats()
	l := gojsonschema.NewSchemaLoader()
	l.AutoDetect = false
	l.Validate = false
	l.Draft = gojsonschema.Draft7
	for _, doc := range others {
		if err := l.AddSchemas(gojsonschema.NewGoLoader(private(doc))); err != nil {
			return nil, fmt.Errorf("schema %v: %w", doc["$id"], err)
		}
	}
	s, err := l.Compile(gojsonschema.NewGoLoader(private(root)))
	if err != nil {
		return nil, fmt.Errorf("schema %v: %w", root["$id"], err)
	}
	return s, nil
}
