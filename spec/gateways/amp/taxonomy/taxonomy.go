// Package taxonomy owns the schemas of the capabilities that AMP's document lists, by the names with
// which it refers to them. It must not know how a schema is checked.
package taxonomy

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed taxonomy.json
var text []byte

// Taxonomy is what taxonomy.json has.
type Taxonomy struct {
	Categories []Category `json:"categories"`
	// Definitions are the schemas of JSON Schema by name: TextAnalysisInput is what the capability
	// text-analysis takes, TextAnalysisOutput what it answers.
	Definitions map[string]json.RawMessage `json:"definitions"`
}

// Category is a heading of the document, with the ids of its capabilities.
type Category struct {
	Name         string   `json:"name"`
	Capabilities []string `json:"capabilities"`
}

// Read returns the taxonomy.
func Read() (t Taxonomy, err error) {
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("taxonomy.json: %w", err)
	}
	return t, nil
}
