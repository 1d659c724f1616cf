package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// shape has a member for every kind of field.
type shape struct {
	Text  string          `json:"text"`
	List  []string        `json:"list"`
	Int   int             `json:"int"`
	Long  int64           `json:"long"`
	Big   uint64          `json:"big"`
	Yes   bool            `json:"yes"`
	Raw   json.RawMessage `json:"raw"`
	Inner struct {
		Text string `json:"text"`
	} `json:"inner"`
}

func read(raw []byte) (s shape, err error) {
	err = Object(raw, Fields{
		{"text", &s.Text}, {"list", &s.List}, {"int", &s.Int}, {"long", &s.Long}, {"big", &s.Big}, {"yes", &s.Yes}, {"raw", &s.Raw},
		{"inner", func(raw json.RawMessage) error { return Object(raw, Fields{{"text", &s.Inner.Text}}) }},
	})
	return s, err
}

func TestObjectReadsWhatEncodingJSONReads(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{}`,
		" {\t\"text\" : \"a\" ,\r\n\"int\": -7 } ",
		`{"text":"plain","list":["a","b\"c",""],"int":1,"long":-9007199254740993,"big":18446744073709551615,"yes":true}`,
		`{"text":"\"\\\/\b\f\n\r\t","other":{"text":"no","deep":[[{"a":"}]\\"}]]}}`,
		`{"text":"\u003c\u00e9\ud83d\ude00 \\u003c"}`,
		`{"text":"é😀","list":[],"raw":{"a":[1,2.5e-3,null,"]"]},"inner":{"text":"in"}}`,
		`{"text":null,"list":null,"int":null,"yes":null,"raw":null,"inner":null}`,
		`{"raw":"\\","text":"after"}`,
		`{"raw":-0.5e+7,"text":"first","text":"last"}`,
	} {
		var want shape
		if err := json.Unmarshal([]byte(in), &want); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if got, err := read([]byte(in)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", in, got, err, want)
		}
	}
}

func TestObjectSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                     "byte 0: want {",
		`[]`:                   "byte 0: want {",
		`{`:                    "byte 1: want a name",
		`{"a"`:                 "byte 4: want a colon",
		`{"a":`:                "byte 5: want a whole value",
		`{"a":}`:               "byte 5: want a whole value",
		`{"a":[1`:              "byte 5: want a whole value",
		`{"a":"b`:              "byte 5: want a whole value",
		`{"a":"b\`:             "byte 5: want a whole value",
		`{"a":1 "b":2}`:        "byte 7: want a comma or }",
		`{"a":1,}`:             "byte 7: want a name",
		`{"a":1`:               "byte 6: want a comma or }",
		`{"a":1}}`:             "byte 7: want the end",
		`{"text":7}`:           "text: want a text",
		`{"text":"\x"}`:        "text: invalid character",
		`{"list":["a",7]}`:     "list: want a text",
		`{"list":{}}`:          "list: byte 0: want [",
		`{"int":"7"}`:          "int: strconv.Atoi",
		`{"long":1.5}`:         "long: strconv.ParseInt",
		`{"big":-1}`:           "big: strconv.ParseUint",
		`{"yes":"true"}`:       "yes: strconv.ParseBool",
		`{"inner":{"text":1}}`: "inner: text: want a text",
	} {
		if _, err := read([]byte(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if err := Object([]byte(`{"a":1}`), Fields{{"a", 1}}); err == nil {
		t.Error("a field that takes nothing took a value")
	}
}

func TestArrayHandsValuesOn(t *testing.T) {
	t.Parallel()
	var got []string
	each := func(v json.RawMessage) error { got = append(got, string(v)); return nil }
	for _, in := range []string{"", "null", "[ ]"} {
		if err := Array([]byte(in), each); err != nil || got != nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if err := Array([]byte(`[ 1, "," ,{"a":[2]},[] ]`), each); err != nil || !reflect.DeepEqual(got, []string{"1", `","`, `{"a":[2]}`, "[]"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if err := Array([]byte(`[1,]`), each); err == nil {
		t.Error("a comma without a value was taken")
	}
	if err := Array([]byte(`[1,2]`), func(json.RawMessage) error { return fmt.Errorf("enough") }); err == nil || err.Error() != "enough" {
		t.Errorf("an error of the reader became %v", err)
	}
}

// Whatever is read does not panic. The members of what is JSON are found as
// encoding/json finds them, where their names are plain and there is one of each.
func FuzzObject(f *testing.F) {
	for _, in := range []string{`{"raw":[{}],"text":"a\n\u0041"}`, `{"raw":"\\\""}`, `{"raw":{"b":[`, `{"raw" : -1e7 }`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := read(in)
		var members map[string]json.RawMessage
		if json.Unmarshal(in, &members) != nil || len(members) != 1 || err != nil {
			return
		}
		if raw, ok := members["raw"]; ok && got.Raw != nil && string(got.Raw) != string(raw) {
			t.Errorf("raw is %s, want %s", got.Raw, raw)
		}
		var text string
		if raw := members["text"]; utf8.Valid(raw) && json.Unmarshal(raw, &text) == nil && got.Text != text {
			t.Errorf("text is %q, want %q", got.Text, text)
		}
	})
}

func TestTextsWritesWhatCanBeRead(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", `"\/`, "a\nb\tc\rd\be\x00\x1f\x7f", "é😀\u2028<&>", "half\xff\xc3"} {
		raw := Texts("name", s, "b", "second")
		var got map[string]string
		if err := json.Unmarshal(raw, &got); err != nil || got["name"] != string([]rune(s)) || got["b"] != "second" {
			t.Errorf("%q became %s: %v", s, raw, err)
		}
	}
}
