package gen

import (
	"fmt"
	"slices"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

// proto3 makes a file of proto3. Numbers come from the lock and go into it.
func proto3(s *dsl.Schema, opt Options) ([]File, error) {
	if opt.Lock == nil {
		opt.Lock = NewLock()
	}
	p := &protoFile{pkg: opt.Package, lock: opt.Lock, names: map[*dsl.Type]string{}, top: scope{}, inner: map[*dsl.Type][]*dsl.Type{}}
	p.nameTypes(s)
	p.line("// %s\n\nsyntax = \"proto3\";\n\npackage %s;", Header, opt.Package)
	for _, t := range s.Types {
		switch {
		case t.Kind == dsl.Enum:
			p.enum(t)
		case t.Kind == dsl.Record && !p.isInner(t):
			p.line("")
			p.message(t, "")
		}
	}
	if len(p.faults) > 0 {
		return nil, p.faults.Sorted()
	}
	return []File{{s.Name + ".proto", p.b.String()}}, nil
}

type protoFile struct {
	code
	pkg    string
	lock   *Lock
	names  map[*dsl.Type]string // with the messages around them
	top    scope
	inner  map[*dsl.Type][]*dsl.Type
	faults dsl.Faults
}

func (p *protoFile) isInner(t *dsl.Type) bool { return t.Inside != nil && t.Inside.Kind == dsl.Record }

// nameTypes names the messages from the outside in: the names of fields and of messages
// below one message are one scope.
func (p *protoFile) nameTypes(s *dsl.Schema) {
	for i := len(s.Types) - 1; i >= 0; i-- { // what is inside comes before
		t := s.Types[i]
		if p.isInner(t) {
			p.inner[t.Inside] = append([]*dsl.Type{t}, p.inner[t.Inside]...)
		}
	}
	for _, t := range s.Types {
		if t.Kind == dsl.Enum || t.Kind == dsl.Record && !p.isInner(t) {
			p.names[t] = p.top.claim(dsl.Pascal(t.Name))
			p.nameInner(t)
		}
	}
}

func (p *protoFile) nameInner(t *dsl.Type) {
	taken := newScope(strings.Join(fieldNames(t), " "))
	for _, in := range p.inner[t] {
		p.names[in] = p.names[t] + "." + taken.claim(dsl.Pascal(in.Name))
		p.nameInner(in)
	}
}

func (p *protoFile) message(t *dsl.Type, indent string) {
	full := p.names[t]
	p.doc(indent+"//", t.Doc)
	p.line("%smessage %s {", indent, full[strings.LastIndex(full, ".")+1:])
	for _, in := range p.inner[t] {
		p.message(in, indent+"  ")
		p.line("")
	}
	var used []string
	for _, f := range t.Fields {
		typ := p.fieldType(t, f)
		n := p.lock.number(t.Path, f.Name, typ)
		used = append(used, f.Name)
		if f.Optional && !strings.Contains(typ, " ") && !strings.HasPrefix(typ, "map<") {
			typ = "optional " + typ
		}
		p.doc(indent+"  //", f.Doc)
		p.line("%s  %s %s = %d;", indent, p.qualified(typ), f.Name, n)
	}
	p.reserved(t.Path, indent, used, func(field string) string { return field })
	p.line("%s}", indent)
}

// reserved keeps the numbers and names of what was removed from being given again. protoc
// refuses a reserved name that is used, or reserved twice.
func (p *protoFile) reserved(path, indent string, used []string, style func(string) string) {
	for _, e := range p.lock.unused(path) {
		p.line("%s  reserved %d;", indent, e.number)
		if name := style(e.name); !slices.Contains(used, name) {
			p.line("%s  reserved %q;", indent, name)
			used = append(used, name)
		}
	}
}

// fieldType is the type of a field as the lock has it: without optional.
func (p *protoFile) fieldType(t *dsl.Type, f dsl.Field) string {
	typ := f.Type.Plain()
	var elem *dsl.Type
	if typ.Kind == dsl.List || typ.Kind == dsl.Map {
		elem = typ.Elem.Plain()
		if elem.Kind == dsl.List || elem.Kind == dsl.Map {
			p.faults = append(p.faults, t.Fault(f.Name, "proto3 has no lists or maps of lists or maps: declare a record for the inner one"))
			return "string"
		}
	}
	switch typ.Kind {
	case dsl.List:
		return "repeated " + p.single(elem)
	case dsl.Map:
		return "map<string," + p.single(elem) + ">"
	}
	return p.single(typ)
}

func (p *protoFile) single(t *dsl.Type) string {
	if t.Kind == dsl.Alias {
		t = t.Elem.Plain()
	}
	if name, ok := p.names[t]; ok {
		return name
	}
	return map[dsl.Kind]string{dsl.String: "string", dsl.Int: "int32", dsl.Long: "int64", dsl.Float: "double", dsl.Boolean: "bool", dsl.Bytes: "bytes"}[t.Kind]
}

// qualified writes the names of messages and enums from the root, so that no field's
// name hides them.
func (p *protoFile) qualified(typ string) string {
	begin := strings.LastIndexAny(typ, " ,") + 1
	if c := typ[begin]; c < 'A' || c > 'Z' {
		return typ
	}
	return typ[:begin] + "." + p.pkg + "." + typ[begin:]
}

func (p *protoFile) enum(t *dsl.Type) {
	style := func(value string) string { return strings.ToUpper(snake(t.Name) + "_" + snake(value)) }
	zero := "UNSPECIFIED"
	for i, others := 0, []string{"ABSENT", "NOT_SET"}; hasValue(t, zero); i++ {
		if zero = fmt.Sprint("NOT_SET_", i); i < len(others) {
			zero = others[i]
		}
	}
	p.line("")
	p.doc("//", t.Doc)
	used := []string{p.top.claim(style(zero))}
	p.line("enum %s {\n  %s = 0;", p.names[t], used[0])
	for _, v := range t.Values {
		p.doc("  //", v.Doc)
		name := p.top.claim(style(v.Name))
		p.line("  %s = %d;", name, p.lock.number(t.Path, v.Name, "value"))
		used = append(used, name)
	}
	p.reserved(t.Path, "", used, style)
	p.line("}")
}

func hasValue(t *dsl.Type, name string) bool {
	for _, v := range t.Values {
		if strings.EqualFold(strings.ReplaceAll(v.Name, "_", ""), strings.ReplaceAll(name, "_", "")) {
			return true
		}
	}
	return false
}
