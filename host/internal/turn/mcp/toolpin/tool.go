package toolpin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/gowebpki/jcs"
)

// Limits of one definition.
const (
	MaxDescription = 16 << 10 // bytes
	MaxSchema      = 64 << 10 // bytes, of the schema and of the annotations
	maxDepth       = 64       // levels of JSON
)

// Tool is the definition of a tool. It is immutable.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// InputSchema is a JSON Schema of an object.
	InputSchema json.RawMessage `json:"inputSchema"`
	// Annotations are the server's hints about the tool; nil for none.
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// SHA256 is the digest of the other fields, in 64 hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// IsName reports whether the protocol allows the name for a tool.
func IsName(name string) bool { return toolName.MatchString(name) }

// toolName matches the tool names of the protocol
// (https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names).
var toolName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// New takes a definition from a server and normalizes its JSON. Of a duplicate key the
// last value counts, as in JSON Schema validators.
func New(name, description string, inputSchema, annotations json.RawMessage) (Tool, error) {
	t := Tool{Name: name, Description: description}
	if !toolName.MatchString(name) {
		return t, fmt.Errorf("the name %.140q is not 1 to 128 of letters, digits, \"_\", \"-\", \".\" and \"/\"", name)
	}
	if len(description) > MaxDescription {
		return t, fmt.Errorf("tool %q: the description has %d bytes, at most %d", name, len(description), MaxDescription)
	}
	var err error
	if t.InputSchema, err = normalizeObject(inputSchema); err != nil {
		return t, fmt.Errorf("tool %q: inputSchema %w", name, err)
	}
	if len(annotations) > 0 && string(annotations) != "null" {
		if t.Annotations, err = normalizeObject(annotations); err != nil {
			return t, fmt.Errorf("tool %q: annotations %w", name, err)
		}
	}
	t.SHA256, err = t.digest()
	return t, err
}

// normalizeObject normalizes a JSON object.
func normalizeObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > MaxSchema {
		return nil, fmt.Errorf("has %d bytes, at most %d", len(raw), MaxSchema)
	}
	if nesting(raw) > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil || doc == nil {
		return nil, errors.New("is not a JSON object")
	}
	return marshalUnescaped(doc)
}

// nesting is the depth of nested brackets outside of strings.
func nesting(raw []byte) (most int) {
	level, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}

// marshalUnescaped encodes without HTML escapes.
func marshalUnescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func (t Tool) digest() (string, error) {
	raw, err := marshalUnescaped(struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}{t.Name, t.Description, t.InputSchema, t.Annotations})
	if err != nil {
		return "", fmt.Errorf("tool %q: %w", t.Name, err)
	}
	if raw, err = jcs.Transform(raw); err != nil {
		return "", fmt.Errorf("tool %q has no canonical JSON: %w", t.Name, err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Repeatable reports whether the tool's annotations allow a second call with the same
// effect as one.
func (t Tool) Repeatable() bool {
	var a struct {
		ReadOnly   bool `json:"readOnlyHint"`
		Idempotent bool `json:"idempotentHint"`
	}
	return json.Unmarshal(t.Annotations, &a) == nil && (a.ReadOnly || a.Idempotent)
}
