package check

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"skep/host/internal/gateway/acp/dsl"
)

func load(t testing.TB, text string) *dsl.Type {
	t.Helper()
	s, err := dsl.Load("test.acp", func(string) (string, error) { return text, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s.Root()
}

// members that an open record does not declare are found with their texts.
func TestExtra(t *testing.T) {
	t.Parallel()
	root := load(t, "type Message = { header: { id: String, x_token: String? }, body: String }")
	extra, err := Extra(root, []byte(`{"header":{"id":"1","x_trace":{"b": [1.0, null],"a":"é"},"x_token":"t"},"body":""}`))
	if err != nil || len(extra) != 1 || string(extra["Message.header.x_trace"]) != `{"b":[1.0,null],"a":"é"}` {
		t.Errorf("%s, %v", extra, err)
	}
	if err := Message(root, []byte(`{"header":{"id":"1","x_token":7},"body":""}`)); err == nil || err.Error() != "Message.header.x_token: is no string" {
		t.Error(err)
	}
}

// A reason lists some values of a long enum, not all.
func TestValueList(t *testing.T) {
	t.Parallel()
	root := load(t, "enum E { A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, B0, B1, B2, B3 }\ntype R = { e: E }")
	want := "R.e: is none of A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, B0, B1 and 2 more"
	if err := Message(root, []byte(`{"e":"C"}`)); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// What cannot be read is not written.
func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	known := func(text string) bool { return text == "A" }
	var deep func(w *writer, n int)
	deep = func(w *writer, n int) {
		if w.open('[') && n > 0 {
			deep(w, n-1)
		}
		w.close(']')
	}
	nest := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	others := func(w *writer, extra map[string]json.RawMessage) {
		w.open('{')
		writeOthers(w, extra, known)
		w.close('}')
	}
	for _, tt := range []struct {
		write func() ([]byte, error)
		want  string
	}{
		{func() ([]byte, error) { return encode("a\xff", "T", writeString) }, "T: is not UTF-8"},
		{func() ([]byte, error) { return encode(math.NaN(), "T", writeFloat) }, "T: is no number of 64 bits"},
		{func() ([]byte, error) { return encode([]float64{1, math.Inf(1)}, "T", writeList(writeFloat)) }, "T[1]: is no number of 64 bits"},
		{func() ([]byte, error) { return encode(map[string]string{"k": "\xff"}, "T", writeMap(writeString)) }, `T["k"]: is not UTF-8`},
		{func() ([]byte, error) { return encode(map[string]string{"\xff": "v"}, "T", writeMap(writeString)) }, "is not UTF-8"},
		{func() ([]byte, error) {
			return encode("B", "T", func(w *writer, s string) { writeEnum(w, s, known, "A") })
		}, "T: is none of A"},
		{func() ([]byte, error) { return encode(64, "T", deep) }, "the text is nested deeper than 64"},
		{func() ([]byte, error) { return encode(strings.Repeat("x", maxText), "T", writeString) }, "the text has more than 1048576 bytes"},
		{func() ([]byte, error) { return encode(map[string]json.RawMessage{"A": []byte("1")}, "T", others) }, `T["A"]: is declared and cannot be there twice`},
		{func() ([]byte, error) { return encode(map[string]json.RawMessage{"x": []byte("{")}, "T", others) }, `T["x"]: the text is no JSON`},
		{func() ([]byte, error) { return encode(map[string]json.RawMessage{"x": []byte(nest)}, "T", others) }, "the text is nested deeper than 64"},
	} {
		if text, err := tt.write(); err == nil || !strings.Contains(err.Error(), tt.want) || text != nil {
			t.Errorf("%.40s, %v, want %q", text, err, tt.want)
		}
	}
	if text, err := encode(63, "T", deep); err != nil || len(text) != 128 {
		t.Errorf("%s, %v", text, err)
	}
}

// scalars has what generated records are made of.
type scalars struct {
	flag bool
	n    int32
	long *int64
	raw  []byte
	tags []string
}

// What was written is read as the same, absent members included.
func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	long := int64(math.MinInt64)
	write := func(w *writer, s scalars) {
		w.open('{')
		writeField(w, "flag", s.flag, writeBoolean)
		writeField(w, "n", s.n, writeInt)
		writeOptional(w, "long", s.long, writeLong)
		writeField(w, "raw", s.raw, writeBytes)
		if s.tags != nil {
			writeField(w, "tags", s.tags, writeList(writeString))
		}
		w.close('}')
	}
	read := func(r *reader, v *value) scalars {
		return scalars{
			field(r, v, "flag", readBoolean), field(r, v, "n", readInt), optional(r, v, "long", readLong),
			field(r, v, "raw", readBytes), optionalParts(r, v, "tags", readList(readString)),
		}
	}
	for _, s := range []scalars{{true, -1, &long, []byte{0, 255}, []string{}}, {false, math.MaxInt32, nil, []byte{}, nil}, {raw: []byte("x"), tags: []string{"\x00\"\\", "é"}}} {
		text, err := encode(s, "T", write)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(text, "T", read); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// Sources are what generated Go has beside its types.
func TestSources(t *testing.T) {
	t.Parallel()
	for name, text := range Sources() {
		if !strings.HasPrefix(text, "package check\n") || strings.Contains(text, "skep/") {
			t.Errorf("%s cannot be copied", name)
		}
	}
}

// FuzzParse: a text that is read is JSON, and is written and read as the same; one that
// is refused as no JSON is none.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a":[1,-0.5e+7,"\u00e9\ud83d\ude00\n",true,false,null,{}]}`, `{"a":1,"a":2}`, `"\ud800"`, "[01]", " [ ] ", "\"\xff\"", "[[[", "1e5", `"\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseText([]byte(text))
		if err != nil {
			if err == errJSON && json.Valid([]byte(text)) {
				t.Errorf("%q was refused", text)
			}
			return
		}
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Fatalf("%q was accepted", text)
		}
		w := &writer{}
		writeValue(w, v)
		again, err := parseText(w.b)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, w.b, err)
		}
		second := &writer{}
		if writeValue(second, again); string(second.b) != string(w.b) {
			t.Errorf("%q became %q and %q", text, w.b, second.b)
		}
	})
}
