package gen

import (
	"bytes"
	"encoding/json"

	"skep/host/internal/gateway/acp/dsl"
)

// maxFloat is the largest number of 64 bits.
const maxFloat = json.Number("1.7976931348623157e308")

// base64Pattern is base64 with padding and without unused bits. In the regular expressions of
// some languages a $ also stands before a last line break, so that is refused besides.
const base64Pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

// jsonSchema makes a JSON Schema 2020-12 of the root, with all types below $defs.
func jsonSchema(s *dsl.Schema, opt Options) ([]File, error) {
	defs := members{}
	for _, t := range s.Types {
		defs = append(defs, entry{t.Name, definition(t)})
	}
	doc := members{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$comment", Header}}
	if opt.Root != nil {
		doc = append(doc, entry{"$ref", "#/$defs/" + opt.Root.Name})
	}
	doc = append(doc, entry{"$defs", defs})
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return []File{{s.Name + ".schema.json", b.String()}}, nil
}

// members is an object that keeps its order.
type members []entry

type entry struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, e := range m {
		b.WriteByte(map[bool]byte{true: '{', false: ','}[i == 0])
		if err := enc.Encode(e.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(e.value); err != nil {
			return nil, err
		}
	}
	if len(m) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// definition is the schema of a type that has a name.
func definition(t *dsl.Type) members {
	about := described(t.Doc)
	switch t.Kind {
	case dsl.Enum:
		return append(about, entry{"type", "string"}, entry{"enum", valueNames(t)})
	case dsl.Record:
		properties, required := members{}, []string{}
		for _, f := range t.Fields {
			properties = append(properties, entry{f.Name, property(f)})
			if !f.Optional {
				required = append(required, f.Name)
			}
		}
		m := append(about, entry{"type", "object"}, entry{"properties", properties}, entry{"required", required})
		if !t.Open {
			m = append(m, entry{"additionalProperties", false})
		}
		return m
	}
	return append(about, schemaOf(t.Elem)...)
}

func described(doc []string) (m members) {
	text := ""
	for i, l := range doc {
		if i > 0 {
			text += " "
		}
		text += l
	}
	if text != "" {
		m = members{{"description", text}}
	}
	return m
}

// property is a field; one that may be absent may be null, too.
func property(f dsl.Field) members {
	if f.Optional {
		return append(described(f.Doc), entry{"anyOf", []members{schemaOf(f.Type), {{"type", "null"}}}})
	}
	return append(described(f.Doc), schemaOf(f.Type)...)
}

// schemaOf is a type where it is used.
func schemaOf(t *dsl.Type) members {
	switch t.Kind {
	case dsl.String:
		return members{{"type", "string"}}
	case dsl.Int:
		return members{{"type", "integer"}, {"minimum", json.Number("-2147483648")}, {"maximum", json.Number("2147483647")}}
	case dsl.Long:
		return members{{"type", "integer"}, {"minimum", json.Number("-9223372036854775808")}, {"maximum", json.Number("9223372036854775807")}}
	case dsl.Float:
		return members{{"type", "number"}, {"minimum", "-" + maxFloat}, {"maximum", maxFloat}}
	case dsl.Boolean:
		return members{{"type", "boolean"}}
	case dsl.Bytes:
		return members{{"type", "string"}, {"contentEncoding", "base64"}, {"pattern", base64Pattern}, {"not", members{{"pattern", `\n`}}}}
	case dsl.List:
		return members{{"type", "array"}, {"items", schemaOf(t.Elem)}}
	case dsl.Map:
		return members{{"type", "object"}, {"additionalProperties", schemaOf(t.Elem)}}
	}
	return members{{"$ref", "#/$defs/" + t.Name}}
}
