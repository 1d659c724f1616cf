package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway/wire"
)

// Only a text with one reading passes.
func TestCheckJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":[1,{"a":"ä"}]}`:             "",
		`"a"`:                             "",
		``:                                "is not JSON",
		`{`:                               "is not JSON",
		`{} {}`:                           "is not JSON",
		"\"\xff\"":                        "is not valid UTF-8",
		`{"a":1,"b":2,"a":3}`:             `has the member "a" twice`,
		`[{"a":1,"\u0061":2}]`:            `has the member "a" twice`,
		`["\udc00"]`:                      "has half of a surrogate pair",
		strings.Repeat("[", 5) + "1]]]]]": "is nested deeper than max_depth of [gateways.toy]",
		strings.Repeat("[", 4) + "1]]]]":  "",
	} {
		err := wire.CheckJSON([]byte(text), "toy", 4)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Texts are written as they are, and JSON that was read before keeps its members.
func TestEncode(t *testing.T) {
	t.Parallel()
	got, err := wire.Encode(map[string]any{"text": "<a> & é\n", "raw": json.RawMessage(`{ "b" : "<" }`)})
	if want := `{"raw":{"b":"<"},"text":"<a> & é\n"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if _, err := wire.Encode(func() {}); err == nil {
		t.Error("a function has no form in JSON")
	}
}
