package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xeipuuv/gojsonschema"

	"skep/abi"
	"skep/spec"
)

// ErrUnknownTool is wrapped by [Set.ToolArgs] when there is no such tool.
var ErrUnknownTool = errors.New("unknown tool")

// Tools returns the MAIL tools in the order in which agents are shown them. The
// caller must not change their Parameters.
func (s *Set) Tools() []abi.Tool { return append([]abi.Tool(nil), s.tools...) }

// ToolSchema returns the schema of a tool's parameters, or nil if there is no such
// tool. The caller must not change it.
func (s *Set) ToolSchema(tool string) json.RawMessage {
	for i := range s.tools {
		if s.tools[i].Name == tool {
			return s.tools[i].Parameters
		}
	}
	return nil
}

// ToolArgs returns nil if raw, one JSON object, has the arguments that the tool
// takes (S-10). It wraps [ErrUnknownTool] if there is no such tool; its other
// errors are [Set.Message]'s.
func (s *Set) ToolArgs(tool string, raw []byte) error {
	by, ok := s.args[tool]
	if !ok {
		return fmt.Errorf("%w %q", ErrUnknownTool, tool)
	}
	return validateRaw(by, raw)
}

func (s *Set) loadTools() error {
	raw, err := spec.Schema(spec.ToolsSchema)
	if err != nil {
		return err
	}
	var doc struct{ Tools []abi.Tool }
	if err := json.Unmarshal(raw, &doc); err != nil {
		return fmt.Errorf("schema %s: %w", spec.ToolsSchema, err)
	}
	s.tools = doc.Tools
	s.args = make(map[string]*gojsonschema.Schema, len(s.tools))
	for _, t := range s.tools {
		if s.args[t.Name], err = compileTool(t); err != nil {
			return err
		}
	}
	return nil
}

// compileTool gives the tool's schema the $id that lint and errors need; the one
// that models are shown has none.
func compileTool(t abi.Tool) (*gojsonschema.Schema, error) {
	var doc map[string]any
	if err := json.Unmarshal(t.Parameters, &doc); err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	doc["$id"] = "skep://mail/1.3/tools/" + t.Name
	if err := lint(doc); err != nil {
		return nil, err
	}
	return compile(doc)
}
