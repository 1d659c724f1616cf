package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xeipuuv/gojsonschema"
)

// Stranger returns nil if raw is a third party's JSON Schema of draft 7 that
// compiles. Unlike this repository's schemas it may use the whole draft and unknown
// keywords. Nothing is fetched: a $ref that leads out
// of the document is a fault.
func Stranger(raw json.RawMessage) error {
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	if _, object := doc.(map[string]any); !object {
		return errors.New("a schema is a JSON object")
	}
	l := gojsonschema.NewSchemaLoader()
	l.AutoDetect = false
	l.Validate = false
	l.Draft = gojsonschema.Draft7
	_, err := l.Compile(closed{gojsonschema.NewGoLoader(doc)})
	return err
}

// closed is a document that leads to no other.
type closed struct{ gojsonschema.JSONLoader }

// LoaderFactory is the library's interface.
func (closed) LoaderFactory() gojsonschema.JSONLoaderFactory { return nowhere{} }

// nowhere refuses to load anything.
type nowhere struct{}

// New is the library's interface.
func (nowhere) New(source string) gojsonschema.JSONLoader {
	return missing{gojsonschema.NewStringLoader("{}"), source}
}

type missing struct {
	gojsonschema.JSONLoader
	source string
}

// LoadJSON is the library's interface.
func (m missing) LoadJSON() (any, error) {
	return nil, fmt.Errorf("the $ref to %s leads out of the schema", m.source)
}
