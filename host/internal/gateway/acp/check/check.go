package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

// MaxMessage is the largest text of a message, in bytes.
const MaxMessage = maxText

// Message returns why a text is no message of a record, nil when it is one.
func Message(root *dsl.Type, text []byte) error {
	_, err := Extra(root, text)
	return err
}

// Extra returns the members of a message that its records do not declare, each with its
// text, by their place.
func Extra(root *dsl.Type, text []byte) (map[string]json.RawMessage, error) {
	c := &checker{extra: map[string]json.RawMessage{}}
	_, err := decode(text, root.Name, c.reader(root))
	if err != nil {
		return nil, err
	}
	return c.extra, nil
}

// checker reads values of types that are known only now.
type checker struct {
	extra map[string]json.RawMessage
	// explains is set where a reason names all missing fields of a record.
	explains bool
}

func (c *checker) reader(t *dsl.Type) func(*reader, *value) bool {
	return func(r *reader, v *value) bool { c.read(r, v, t); return true }
}

func (c *checker) read(r *reader, v *value, t *dsl.Type) {
	switch t.Kind {
	case dsl.String:
		readString(r, v)
	case dsl.Int:
		readInt(r, v)
	case dsl.Long:
		readLong(r, v)
	case dsl.Float:
		readFloat(r, v)
	case dsl.Boolean:
		readBoolean(r, v)
	case dsl.Bytes:
		readBytes(r, v)
	case dsl.List:
		readList(c.reader(t.Elem))(r, v)
	case dsl.Map:
		readMap(c.reader(t.Elem))(r, v)
	case dsl.Alias:
		c.read(r, v, t.Elem)
	case dsl.Enum:
		readEnum(r, v, func(text string) bool {
			return slices.ContainsFunc(t.Values, func(one dsl.EnumValue) bool { return one.Name == text })
		}, ValueList(t))
	case dsl.Record:
		c.record(r, v, t)
	}
}

func (c *checker) record(r *reader, v *value, t *dsl.Type) {
	if !readObject(r, v) {
		return
	}
	for _, f := range t.Fields {
		if f.Optional {
			optional(r, v, f.Name, c.reader(f.Type))
		} else {
			field(r, v, f.Name, c.reader(f.Type))
		}
	}
	if c.explains && r.err != nil {
		r.listMissing(v, t.Fields)
	}
	declared := func(name string) bool {
		return slices.ContainsFunc(t.Fields, func(f dsl.Field) bool { return f.Name == name })
	}
	if !t.Open {
		noOthers(r, v, declared)
		return
	}
	for name, text := range others(v, declared) {
		c.extra[place(r.path)+"."+name] = text
	}
}

// listed is how many values of an enum a reason lists.
const listed = 12

// ValueList lists the values of an enum for a reason, shortened.
func ValueList(t *dsl.Type) string {
	var names []string
	for _, v := range t.Values[:min(len(t.Values), listed)] {
		names = append(names, v.Name)
	}
	text := strings.Join(names, ", ")
	if len(t.Values) > listed {
		text += fmt.Sprintf(" and %d more", len(t.Values)-listed)
	}
	return text
}
