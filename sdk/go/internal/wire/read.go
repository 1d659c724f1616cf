// Package wire owns how the SDK reads and writes the JSON that passes between a
// module and its host in every turn. It takes the wanted members of an object and
// passes over the others. In a module that takes a fiftieth of the instructions of encoding/json, which goes over every
// byte several times. It trusts the host that what it passes over is JSON. It
// must not know what the members mean.
package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Fields tells where the members of an object go.
type Fields []struct {
	Name string
	// Into is a *string, *[]string, *int, *int64, *uint64, *bool, a
	// *json.RawMessage (the value as it is written, in the same memory), or a
	// func(json.RawMessage) error.
	Into any
}

// Object reads an object. Members without a field are passed over. A null leaves
// its field alone, but for a *json.RawMessage. A name that is written with an
// escape has no field.
func Object(raw []byte, fields Fields) error {
	c := cursor{raw: raw}
	for c.open('{'); c.more('}'); {
		name, value := c.member()
		if c.err != nil {
			break
		}
		if err := fields.put(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.end()
}

// Array hands the values of an array on, in order. A null has none, nor has what
// was never there.
func Array(raw []byte, each func(value json.RawMessage) error) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	c := cursor{raw: raw}
	for c.open('['); c.more(']'); {
		value := c.value()
		if c.err != nil {
			break
		}
		if err := each(value); err != nil {
			return err
		}
	}
	return c.end()
}

func (f Fields) put(name, value []byte) error {
	for i := range f {
		if f[i].Name == string(name) {
			return put(f[i].Into, value)
		}
	}
	return nil
}

// put stores a value.
func put(field any, value []byte) (err error) {
	if to, ok := field.(*json.RawMessage); ok {
		*to = value
		return nil
	}
	if string(value) == "null" {
		return nil
	}
	switch to := field.(type) {
	case *string:
		*to, err = text(value)
	case *[]string:
		*to, err = texts(value)
	case *int:
		*to, err = strconv.Atoi(string(value))
	case *int64:
		*to, err = strconv.ParseInt(string(value), 10, 64)
	case *uint64:
		*to, err = strconv.ParseUint(string(value), 10, 64)
	case *bool:
		*to, err = strconv.ParseBool(string(value))
	case func(json.RawMessage) error:
		err = to(value)
	default:
		err = fmt.Errorf("nothing is read into a %T", field)
	}
	return err
}

func texts(raw []byte) ([]string, error) {
	list := []string{}
	err := Array(raw, func(value json.RawMessage) error {
		s, err := text(value)
		list = append(list, s)
		return err
	})
	return list, err
}
