package abi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ReadRequest decodes the request of an op into a pointer to its request type of
// this package. Names of members are exact; unknown ones, and those that are
// there twice, are refused. Null is as if absent, and no bytes are an empty
// object. The error names the member and what it must be. It checks no bounds.
func ReadRequest(raw []byte, into any) error {
	if len(raw) == 0 {
		return nil
	}
	v := reflect.ValueOf(into).Elem()
	names := memberNames(v.Type())
	o, err := openObject(raw, names...)
	if err != nil {
		return err
	}
	o.fill(v, names)
	return *o.fault
}

// memberNames are the names of a struct's members, in the order of its fields.
func memberNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// fill reads the members of an object into the fields of a struct.
func (o object) fill(v reflect.Value, names []string) {
	known := 0
	for i, name := range names {
		if _, there := o.members[name]; there {
			known++
		}
		if raw := o.raw(name); raw != nil {
			o.set(v.Field(i), o.path+name, raw)
		}
	}
	if known < len(o.members) {
		o.strange(names)
	}
}

// set reads one value.
func (o object) set(v reflect.Value, path string, raw json.RawMessage) {
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		names := memberNames(t)
		part := object{path: path + ".", fault: o.fault}
		part.read(raw, names)
		v.Set(reflect.New(t))
		part.fill(v.Elem(), names)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && raw[0] == '[':
		o.setList(v, path, raw)
	case t == reflect.TypeFor[map[string]string]() && raw[0] == '{':
		part := object{path: path + ".", fault: o.fault}
		part.read(raw, nil)
		texts := make(map[string]string, len(part.members))
		for name := range part.members {
			var text string
			if raw := part.raw(name); raw != nil && json.Unmarshal(raw, &text) != nil {
				o.failf("%s%s must be a text, not %s", part.path, member(name), kindOf(raw))
			}
			texts[name] = text
		}
		v.Set(reflect.ValueOf(texts))
	case t == reflect.TypeFor[[]byte]() && raw[0] != '"', json.Unmarshal(raw, v.Addr().Interface()) != nil:
		o.failf("%s must be %s, not %s", path, kindWanted(t), kindOf(raw))
	}
}

// setList reads a list of objects.
func (o object) setList(v reflect.Value, path string, raw json.RawMessage) {
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // it is JSON
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	names := memberNames(v.Type().Elem())
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item[0] != '{' {
			o.failf("%s must be an object, not %s", at, kindOf(item))
			return
		}
		part := object{path: at + ".", fault: o.fault}
		part.read(item, names)
		part.fill(list.Index(i), names)
	}
	v.Set(list)
}

// kindWanted names what a value of a type is written as.
func kindWanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Span]():
		return `a time as in "90s" or a number of milliseconds`
	case t == reflect.TypeFor[[]byte]():
		return "bytes as base64 with padding"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// strange refuses a member that has no meaning, the first by its name.
func (o object) strange(names []string) {
	first := ""
	for name := range o.members {
		if !slices.Contains(names, name) && (first == "" || name < first) {
			first = name
		}
	}
	o.failf("%s%s is no member; the members are %s", o.path, member(first), strings.Join(names, ", "))
}
