package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

// ACP has the keys that only [gateways.acp] has.
type ACP struct {
	DSL string
	// Declarations are what the file of DSL declares, nil without it.
	Declarations *dsl.Schema
}

var acpProtocol = protocol{called: true, rights: []string{"ask", "tell", "relay"}, keys: func() Keys { return new(ACP) }}

// Settings are the keys of the gateway.
func (a *ACP) Settings() []Setting {
	return []Setting{
		field(&a.DSL, "dsl", "path", a.readDeclarations, "Declarations of messages with more header fields than ACP 1.0 has, as in `file:acme.acp`: messages must fit them."),
	}
}

// declarationsPrefix begins the value of dsl.
const declarationsPrefix = "file:"

// readDeclarations compiles the file that dsl names.
func (a *ACP) readDeclarations(t *table, key string) string {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	name, ok := strings.CutPrefix(v.text, declarationsPrefix)
	if !ok || name == "" {
		t.d.atValue(v.location, v.path+` must name a file, as in "file:acme.acp"`)
		return ""
	}
	full := t.d.path(name)
	schema, err := dsl.Load(filepath.Base(full), func(name string) (string, error) {
		at := filepath.Join(filepath.Dir(full), filepath.FromSlash(name))
		t.d.refer(at, false)
		return readDeclaration(at)
	})
	if err == nil {
		err = checkDeclarations(schema)
	}
	var faults dsl.Faults
	switch {
	case errors.As(err, &faults):
		first := faults[0]
		first.Source = "" // a fault is one line here
		t.d.atValue(v.location, fmt.Sprintf("%s: %s; see skep acp check", v.path, first))
	case err != nil:
		t.d.atValue(v.location, fmt.Sprintf("%s: %s: %s", v.path, name, err))
	}
	a.Declarations = schema
	return full
}

// readDeclaration reads one file, up to a little more than a compiler takes.
func readDeclaration(name string) (string, error) {
	if err := isFile(name); err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", reason(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, dsl.MaxBytes+1))
	return string(text), err
}

// messageTypes are the types of messages of ACP 1.0, headerFields the texts of their
// headers, and which of these may be absent.
var (
	messageTypes = []string{"REQUEST", "RESPONSE", "INFORM", "QUERY", "ACKNOWLEDGE", "ERROR"}
	headerFields = map[string]bool{
		"version": false, "sender": false, "receiver": false, "id": false, "timestamp": false, "content_type": false,
		"reply_to": true, "conversation_id": true,
	}
)

// checkDeclarations refuses declarations that messages of ACP 1.0 do not fit, but for
// further header fields.
func checkDeclarations(s *dsl.Schema) error {
	root := s.Root()
	if root == nil {
		return errors.New("no record is declared that a message could be")
	}
	header, hasHeader := findField(root, "header")
	if body, has := findField(root, "body"); !hasHeader || !has || len(root.Fields) != 2 || header.Type.Kind != dsl.Record || plainKind(body) != dsl.String {
		return fmt.Errorf("%s must have the members header, a record, and body, a String", root.Name)
	}
	for name, optional := range headerFields {
		if f, has := findField(header.Type, name); !has || f.Optional != optional || plainKind(f) != dsl.String {
			return fmt.Errorf("header.%s must be as in ACP 1.0: a String, and %s", name, map[bool]string{true: "optional", false: "not optional"}[optional])
		}
	}
	kind, has := findField(header.Type, "type")
	if !has || kind.Optional || plainKind(kind) != dsl.Enum || !slices.EqualFunc(kind.Type.Plain().Values, messageTypes, func(v dsl.EnumValue, name string) bool { return v.Name == name }) {
		return fmt.Errorf("header.type must be an enum of %s", strings.Join(messageTypes, ", "))
	}
	return nil
}

func findField(record *dsl.Type, name string) (dsl.Field, bool) {
	i := slices.IndexFunc(record.Fields, func(f dsl.Field) bool { return f.Name == name })
	if i < 0 {
		return dsl.Field{}, false
	}
	return record.Fields[i], true
}

// plainKind is the kind of a field's type behind its names.
func plainKind(f dsl.Field) dsl.Kind {
	t := f.Type
	for t.Kind == dsl.Alias {
		t = t.Elem
	}
	return t.Kind
}
