package gen

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
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

// A-066, V-A36: the proto file compiles, and messages go through its binary form and
// back. What proto3 has no place for stays out: members that are not declared.
func TestProto(t *testing.T) {
	t.Parallel()
	s := load(t, "agreement.acp", flat(agreementText(t)))
	file := compileProto(t, generate(t, "proto", s)[0].Text)
	tried := 0
	for _, c := range samples() {
		if c.want != "" || strings.Contains(c.text, `"x`) || strings.Contains(c.text, `"y"`) || strings.Contains(c.text, `__proto__":1`) || strings.Contains(c.text, `"":true`) || c.typ == "Probe" && !strings.Contains(c.text, "share") {
			continue
		}
		text := canonical(t, c.text)
		if strings.HasPrefix(c.typ, "Said") {
			continue
		}
		text = strings.NewReplacer(`"grid":[[1,2],[]]`, `"grid":[1,2]`, `"mood":"GOOD"`, `"mood":"MOOD_GOOD"`).Replace(text)
		for _, v := range []string{"REQUEST", "RESPONSE", "INFORM", "QUERY", "ACKNOWLEDGE", "ERROR"} {
			text = strings.Replace(text, `"type":"`+v, `"type":"MESSAGE_TYPE_`+v, 1)
		}
		desc := file.Messages().ByName(protoreflect.Name(c.typ))
		if desc == nil {
			t.Fatalf("no message %s", c.typ)
		}
		tried++
		if got := throughProto(t, desc, text); got != withoutEmpty(t, text) {
			t.Errorf("%s: %s, want %s", c.typ, got, text)
		}
	}
	if tried < 30 {
		t.Errorf("%d messages were tried", tried)
	}
}

func throughProto(t testing.TB, desc protoreflect.MessageDescriptor, text string) string {
	t.Helper()
	first, second := dynamicpb.NewMessage(desc), dynamicpb.NewMessage(desc)
	if err := protojson.Unmarshal([]byte(text), first); err != nil {
		t.Errorf("%s: %v", text, err)
		return ""
	}
	raw, err := proto.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(raw, second); err != nil {
		t.Fatal(err)
	}
	out, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(second)
	if err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(t, strings.NewReplacer(`"big":"2"`, `"big":2`, `"big": "2"`, `"big":2`).Replace(string(out)))
}

// withoutEmpty leaves out lists, maps and records with nothing in them: proto3 does not
// tell an empty list from an absent one.
func withoutEmpty(t testing.TB, text string) string {
	for text = canonical(t, text); ; {
		shorter := emptyMember.ReplaceAllString(text, "")
		if shorter == text {
			return canonical(t, strings.NewReplacer("{,", "{", ",}", "}").Replace(text))
		}
		text = shorter
	}
}

var emptyMember = regexp.MustCompile(`,?"[a-z_]+":(\[\]|\{\})`)

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
	if !strings.Contains(lock.String(), "A.a 5 string\n") || !strings.Contains(lock.String(), "A.c.d 1 int32\n") {
		t.Error(lock)
	}
}

func TestParseLockRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A.a": "x.lock:1: this line is not", "\nA.a x int32": "x.lock:2: this line is not", "A.a 0 int32": "x.lock:1", "A.a 19500 int32": "x.lock:1", "a 1 int32": "x.lock:1", "A.a 536870912 int32": "x.lock:1",
		"A.a 1 int32\nA.b 1 int32": "x.lock:2: this number or this field is there already", "A.a 1 int32\nA.a 2 int32": "x.lock:2",
	} {
		if _, err := ParseLock("x.lock", text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
