package check

import (
	"strings"
	"testing"
)

// A reason for a person has the place in a text that is no JSON, the member that is there
// twice and all missing fields, behind the reason that all languages give.
func TestExplain(t *testing.T) {
	t.Parallel()
	root := load(t, "type Message = { header: { id: String, at: String?, to: String, x_n: Int }, body: List<{ a: Int, b: Int }> }")
	for text, want := range map[string]string{
		`{"header":{"id":"1","to":"b","x_n":1},"body":[]}`: "",
		"{\n  \"header\": {},\n  \"é\": }":                 "the text is no JSON: line 3, column 8: invalid character '}' looking for beginning of value",
		"":                                                 "the text is no JSON: line 1, column 1: unexpected end of JSON input",
		"\ufeff{}":                                         "the text is no JSON: line 1, column 1: it begins with a byte order mark",
		`{"header":{}`:                                     "the text is no JSON: line 1, column 12: unexpected end of JSON input",
		"{}\n\n{}":                                         "the text is no JSON: line 3, column 1: invalid character '{' after top-level value",
		"{\"a\":\"é\xff\"}":                                "the text is not UTF-8: line 1, column 8",
		"\xff\xfe{\x00}\x00":                               "the text is not UTF-8: line 1, column 1: it begins as UTF-16 does",
		"\xfe\xff\x00{\x00}":                               "the text is not UTF-8: line 1, column 1: it begins as UTF-16 does",
		`{"header":{"id":"1","to":"b","id":"2"},"body":[]}`:                                 `the text has a member twice: "id" in Message.header`,
		`{"body":1,"body":2}`:                                                               `the text has a member twice: "body" in Message`,
		`{"header":{},"body":[{"a":1},{"a":{"c":[],"c":2}}]}`:                               `the text has a member twice: "c" in Message.body[1].a`,
		`{"header":{"":{"\n":1,"\n":1}}}`:                                                   `the text has a member twice: "\n" in Message.header[""]`,
		`{"a b":{"` + strings.Repeat("x", 70) + `":1,"` + strings.Repeat("x", 70) + `":2}}`: `the text has a member twice: "` + strings.Repeat("x", 60) + `" in Message["a b"]`,
		`{"header":{},"body":[]}`:                                                           "Message.header.id: is missing, as are to and x_n",
		`{"header":{"id":"1","to":7},"body":[]}`:                                            "Message.header.to: is no string",
		`{"header":{"id":"1","to":"b"},"body":[]}`:                                          "Message.header.x_n: is missing",
		`{"header":{"to":"b"},"body":[]}`:                                                   "Message.header.id: is missing, as is x_n",
		`{"header":{"id":"1","to":"b","x_n":1},"body":[{"a":1,"b":1},{}]}`:                  "Message.body[1].a: is missing, as is b",
		`{}`:                         "Message.header: is missing, as is body",
		`{"header":{"id":"\ud800"}}`: "the text has an unpaired surrogate",
		strings.Repeat("[", 65) + strings.Repeat("]", 65):                    "the text is nested deeper than 64",
		`{"header":{"id":"1","to":"b","x_n":1},"body":[], "more":1, "no":2}`: `Message["more"]: is not declared`,
	} {
		got, plain := "", ""
		if err := Explain(root, []byte(text)); err != nil {
			got = err.Error()
		}
		if err := Message(root, []byte(text)); err != nil {
			plain = err.Error()
		}
		if got != want || !strings.HasPrefix(got, plain) || (got == "") != (plain == "") {
			t.Errorf("%s\n%s, want %s; in all languages %s", text, got, want, plain)
		}
	}
}

// TestSyntaxUTF8: a text that is not UTF-8 is told so, and where, also where JSON ends before.
func TestSyntaxUTF8(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"caf\xe9":                  "the text is not UTF-8: line 1, column 4",
		"{\n\"a\":\"\xe9\"}":       "the text is not UTF-8: line 2, column 6",
		"\xff\xfe{\x00}\x00\n\x00": "the text is not UTF-8: line 1, column 1: it begins as UTF-16 does",
		"café":                     "the text is no JSON: line 1, column 1: invalid character 'c' looking for beginning of value",
		`{"a":"é"}`:                "",
	} {
		got := ""
		if err := Syntax([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
