package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/gateway/acp/message"
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
	fields := fieldNames(declaredFields(root))
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

// declaredFields are the declared fields of a message's header.
func declaredFields(root *dsl.Type) []dsl.Field {
	i := slices.IndexFunc(root.Fields, func(f dsl.Field) bool { return f.Name == "header" })
	if i < 0 {
		return nil
	}
	header := root.Fields[i].Type
	for header.Kind == dsl.Alias {
		header = header.Elem
	}
	return header.Fields
}

func fieldNames(fields []dsl.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// ownFields are the declared header fields that ACP 1.0 does not have.
func (r reader) ownFields() []dsl.Field {
	if r.declared == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(declaredFields(r.declared)), func(f dsl.Field) bool {
		return slices.Contains(required, f.Name) || f.Name == "reply_to" || f.Name == "conversation_id"
	})
}

// addDeclared gives a message of the gateway itself the header fields that the operator has
// declared, so that its reader's codec takes it. Each comes from the message that it is about
// where it fits there, and else, unless it is optional, from the partner's option header.
func (g *Gateway) addDeclared(m *message.Message, c gateway.Caller, about message.Header) {
	fields := g.reader.ownFields()
	if len(fields) == 0 {
		return
	}
	partner, _ := g.Runtime.Partner(c.Realm)
	options := headerOf(partner)
	m.Header.Extra = map[string]json.RawMessage{}
	size := 0
	for _, f := range fields {
		value := about.Extra[f.Name]
		if check.Explain(f.Type, value) != nil && !f.Optional {
			value = options[f.Name]
		}
		if size += len(value); size <= maxHeader && check.Explain(f.Type, value) == nil {
			m.Header.Extra[f.Name] = value
		}
	}
}
