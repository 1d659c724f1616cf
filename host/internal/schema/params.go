package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/xeipuuv/gojsonschema"
)

// Bounds of the parameters of an action, which strangers write.
const (
	maxParams   = 32 << 10 // bytes of the schema
	maxPatterns = 1 << 10  // bytes of all its patterns
)

// Params is the compiled schema of an action's parameters or an agent's params. It
// is immutable and may be used by many goroutines at once.
type Params struct {
	schema *gojsonschema.Schema
	effort *effort
}

// CompileParams compiles the parameters of an action: a schema of draft 7 for an
// object, without $ref. Keywords that would not be checked are refused.
func CompileParams(name string, raw []byte) (*Params, error) {
	return compileOpen("action", name, raw)
}

// CompileSettings compiles what a module says of the params of its agents, a schema
// of the same kind.
func CompileSettings(module string, raw []byte) (*Params, error) {
	return compileOpen("params", module, raw)
}

func compileOpen(kind, name string, raw []byte) (*Params, error) {
	if len(raw) > maxParams {
		return nil, fmt.Errorf("the schema has %d bytes, at most %d", len(raw), maxParams)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil || doc == nil {
		return nil, errors.New("the schema must be a JSON object")
	}
	return compileDoc(kind, name, doc)
}

func compileDoc(kind, name string, doc map[string]any) (*Params, error) {
	if kind, ok := doc["type"]; ok && kind != "object" {
		return nil, errors.New(`the schema must have "type": "object"`)
	}
	doc["type"] = "object"
	doc["$id"] = "skep://" + kind + "/" + url.PathEscape(name)
	l := &linter{docs: map[string]map[string]any{}, id: "of " + kind + " " + name, open: true}
	if err := l.schema("#", doc); err != nil {
		return nil, err
	}
	s, err := compile(doc)
	if err != nil {
		return nil, err
	}
	return &Params{s, effortOf(doc)}, nil
}

// Check returns nil if raw is one JSON object that has the shape; its errors are
// [Set.Message]'s, and mail.ErrLimit also where the check would take long.
func (p *Params) Check(raw []byte) error {
	doc, err := decodeWith(raw, true)
	if err != nil {
		return err
	}
	if err := p.effort.affordable(doc); err != nil {
		return err
	}
	return validate(p.schema, doc)
}
