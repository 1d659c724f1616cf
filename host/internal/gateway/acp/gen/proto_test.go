package gen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"skep/host/internal/gateway/acp/dsl"
)

// compileProto compiles a generated file.
func compileProto(t testing.TB, text string) protoreflect.FileDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{"m.proto": text})}}
	files, err := c.Compile(context.Background(), "m.proto")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return files[0]
}

// untold are what proto3 and its JSON take though the codecs refuse it, by the end of the
// reason and a part of the text: no field is demanded, null is an absent field, a number may
// be a text and a word its number. See https://protobuf.dev/programming-guides/json/.
var untold = []struct{ reason, text string }{
	{"is missing", ""}, {"", ":null"},
	{"whole number of 32 bits", ":1.0,"}, {"whole number of 32 bits", ":1e2,"}, {"whole number of 32 bits", `:"1",`},
	{"whole number of 64 bits", ":1.0,"}, {"whole number of 64 bits", ":1e2,"}, {"whole number of 64 bits", `:"1",`},
	{"number of 64 bits", `:"NaN"`}, {"number of 64 bits", `:"1"`},
	{"base64", `"AA"`}, {"base64", `"AB=="`}, {"base64", `"AAB="`}, {"base64", `"A-_="`}, {"base64", `"AAAA\n"`}, {"base64", `"AAAA\r"`}, {"base64", `"AAAA\r\n"`}, {"base64", `:"\n"`},
	{"Mixed", `"mood":7`}, {"ERROR", `"type":7`},
}

// isUntold reports whether a sample is one of untold, is no JSON at all, or has the lists of
// lists that flat leaves out.
func isUntold(c sample) bool {
	for _, place := range []string{"the text", "Probe.grid", "Probe.part.g"} {
		if strings.HasPrefix(c.want, place) {
			return true
		}
	}
	for _, u := range untold {
		if c.want != "" && strings.HasSuffix(c.want, u.reason) && strings.Contains(c.text, u.text) {
			return true
		}
	}
	return false
}

// A-066, V-A36: the proto file compiles, messages go through its binary form and back, and
// it has no place for what the codecs refuse. Members that are not declared stay out.
func TestProto(t *testing.T) {
	t.Parallel()
	s := load(t, "agreement.acp", flat(agreementText(t)))
	file := compileProto(t, generate(t, "proto", s)[0].Text)
	taken, refused := 0, 0
	for _, c := range samples() {
		if isUntold(c) {
			continue
		}
		typ, desc := s.Find(c.typ), file.Messages().ByName(protoreflect.Name(c.typ))
		if typ == nil || desc == nil {
			t.Fatalf("no message %s", c.typ)
		}
		text := strings.NewReplacer(`[[1,2],[]]`, `[1,2]`, `{"k":["x","y"],"j":[]}`, `{"k":"x","j":""}`).Replace(c.text)
		form := protoForm(t, typ, text)
		m := dynamicpb.NewMessage(desc)
		switch err := protojson.Unmarshal([]byte(form), m); {
		case (err == nil) != (c.want == ""):
			t.Errorf("%s %.300s: %v, want %q", c.typ, form, err, c.want)
		case err != nil:
			refused++
		default:
			taken++
			if got, want := canonical(t, protoForm(t, typ, throughProto(t, m))), canonical(t, form); got != want {
				t.Errorf("%s: %.300s, want %.300s", c.typ, got, want)
			}
		}
	}
	if taken < 130 || refused < 60 {
		t.Errorf("%d messages were taken and %d refused", taken, refused)
	}
}

// throughProto writes a message in its binary form and reads it again.
func throughProto(t testing.TB, first *dynamicpb.Message) string {
	t.Helper()
	raw, err := proto.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	second := dynamicpb.NewMessage(first.Descriptor())
	if err := proto.Unmarshal(raw, second); err != nil {
		t.Fatal(err)
	}
	out, err := protojson.MarshalOptions{UseProtoNames: true, UseEnumNumbers: true, EmitDefaultValues: true}.Marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// protoForm is the text of a message as proto3 has it: an enum's word is its number, and
// there are no empty lists and maps, and no members beside the declared ones of an open
// record.
func protoForm(t testing.TB, typ *dsl.Type, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	raw, err := json.Marshal(protoValue(typ, v))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func protoValue(typ *dsl.Type, v any) any {
	for typ.Kind == dsl.Alias {
		typ = typ.Elem
	}
	switch value := v.(type) {
	case string:
		if typ.Kind == dsl.Long { // protojson writes it so
			return json.Number(value)
		}
		at := slices.IndexFunc(typ.Values, func(e dsl.EnumValue) bool { return e.Name == value })
		if typ.Kind == dsl.Enum && at >= 0 {
			return at + 1
		}
	case []any:
		for i := range value {
			if typ.Kind == dsl.List {
				value[i] = protoValue(typ.Elem, value[i])
			}
		}
	case map[string]any:
		for name, part := range value {
			at := slices.IndexFunc(typ.Fields, func(f dsl.Field) bool { return f.Name == name })
			switch {
			case typ.Kind == dsl.Map:
				value[name] = protoValue(typ.Elem, part)
			case at >= 0:
				value[name] = protoValue(typ.Fields[at].Type, part)
				list, isList := part.([]any)
				parts, isMap := part.(map[string]any)
				if typ.Fields[at].Type.Kind == dsl.List && isList && len(list) == 0 || typ.Fields[at].Type.Kind == dsl.Map && isMap && len(parts) == 0 {
					delete(value, name)
				}
			case typ.Open:
				delete(value, name)
			}
		}
	}
	return v
}

// numbers stay when fields move, and are never given twice.
func TestLock(t *testing.T) {
	t.Parallel()
	lock := NewLock()
	run := func(text string) (out string) {
		t.Helper()
		s := load(t, "x.acp", text)
		files, err := Generate("proto", s, Options{Lock: lock})
		if err != nil {
			t.Fatal(err)
		}
		compileProto(t, files[0].Text)
		again, err := ParseLock("x.acp.lock", lock.String())
		if err != nil || again.String() != lock.String() {
			t.Fatalf("%v: %s", err, lock)
		}
		lock = again
		return strings.Join(strings.Fields(files[0].Text), " ")
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("no %q in %s", p, text)
			}
		}
	}
	has(run("type A = { a: Int, b: String, c: { d: Int } }\nenum E { X, Y }"), "int32 a = 1;", "string b = 2;", "C c = 3;", "int32 d = 1;", "E_X = 1; E_Y = 2;")
	has(run("enum E { Y, Z }\ntype A = { n: Bytes, c: { e: Int, d: Int }, a: Int }"), "bytes n = 4;", "C c = 3;", "int32 a = 1; reserved 2; reserved \"b\";", "int32 e = 2; int32 d = 1;", "E_Y = 2; E_Z = 3; reserved 1; reserved \"E_X\";")
	has(run("enum E { X }\ntype A = { b: String, a: String }"), "string b = 2; string a = 5; reserved 1; reserved 3; reserved \"c\"; reserved 4;", "E_X = 1;")
	has(run("enum E { UNSPECIFIED, b_c }"), "E_ABSENT = 0; E_UNSPECIFIED = 4; E_B_C = 5;")
	has(run("enum E { NOT_SET, ABSENT, unspecified, b_c }"), "E_NOT_SET_2 = 0; E_NOT_SET = 6; E_ABSENT = 7; E_UNSPECIFIED = 8; E_B_C = 5;")
	has(run("enum E { B_C }"), "E_UNSPECIFIED = 0; E_B_C = 9; reserved 1;", "reserved 4; reserved 5;")
	has(run("enum E { X }"), "E_X = 1;", "reserved 4; reserved 5; reserved \"E_B_C\"; reserved 6;")
	if !strings.Contains(lock.String(), "A.a 5 string\n") || !strings.Contains(lock.String(), "A.c.d 1 int32\n") {
		t.Error(lock)
	}
}

func TestParseLockRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A.a": "x.lock:1: this line is not", "\nA.a x int32": "x.lock:2: this line is not", "A.a 0 int32": "x.lock:1", "A.a 19500 int32": "x.lock:1", "a 1 int32": "x.lock:1", "A.a 536870912 int32": "x.lock:1",
		"A.a 536870911 int32": "x.lock:1: this line is not", "\ufeffA.a 1 int32": "x.lock:1", "A.a 1 int32\x00": "x.lock:1", "A.a +1 int32": "x.lock:1", "A.é 1 int32": "x.lock:1",
		"A.a 1 int32\nA.b 1 int32": "x.lock:2: this number or this field is there already", "A.a 1 int32\nA.a 2 int32": "x.lock:2",
	} {
		if _, err := ParseLock("x.lock", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A file with a list of lists in every record has no more faults shown than any other file.
func TestProtoFaultsAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "type T%d = { a: List<List<Int>> }\n", i)
	}
	s := load(t, "many.acp", text.String())
	_, err := Generate("proto", s, Options{Root: s.Types[0], Lock: NewLock()})
	var faults dsl.Faults
	if !errors.As(err, &faults) || len(faults) != 20 || faults[0].Line != 1 {
		t.Errorf("%d faults, %.300v", len(faults), err)
	}
}
