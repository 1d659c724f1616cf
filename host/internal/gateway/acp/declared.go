package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/spelling"
)

// required are the header fields of ACP 1.0 that may not be absent, in their order
// (spec/gateways/acp/acp-1.0.acp).
var required = []string{"version", "sender", "receiver", "type", "id", "timestamp", "content_type"}

// form is what a message must have: the operator's declarations, or else what ACP 1.0 demands.
func (r reader) form() *dsl.Type {
	if r.declared != nil {
		form := *r.declared
		form.Name = "Message" // as the codec calls it
		return &form
	}
	text := &dsl.Type{Kind: dsl.String}
	header := &dsl.Type{Kind: dsl.Record, Open: true}
	for _, name := range required {
		header.Fields = append(header.Fields, dsl.Field{Name: name, Type: text})
	}
	return &dsl.Type{Kind: dsl.Record, Name: "Message", Open: true, Fields: []dsl.Field{{Name: "header", Type: header}, {Name: "body", Type: text}}}
}

// checkDeclared returns why a message does not fit the operator's declarations. extra are
// the header fields that ACP 1.0 does not have: one that is probably mistyped is named.
func checkDeclared(root *dsl.Type, text []byte, extra map[string]json.RawMessage) error {
	err := check.Explain(root, text)
	if err == nil {
		return nil
	}
	fields := declaredFields(root)
	missing := slices.DeleteFunc(slices.Clone(fields), func(name string) bool {
		_, has := extra[name]
		return has
	})
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		meant := spelling.Nearest(name, missing)
		if meant == "" || slices.Contains(fields, name) {
			continue
		}
		if place, _, _ := strings.Cut(err.Error(), ":"); strings.HasSuffix(place, ".header."+name) || strings.HasSuffix(place, ".header."+meant) {
			return fmt.Errorf("%w (the message has %q; did you mean %q?)", err, name, meant)
		}
	}
	return err
}

// declaredFields are the declared names of a message's header.
func declaredFields(root *dsl.Type) (names []string) {
	i := slices.IndexFunc(root.Fields, func(f dsl.Field) bool { return f.Name == "header" })
	if i < 0 {
		return nil
	}
	header := root.Fields[i].Type
	for header.Kind == dsl.Alias {
		header = header.Elem
	}
	for _, f := range header.Fields {
		names = append(names, f.Name)
	}
	return names
}
