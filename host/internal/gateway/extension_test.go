package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/host/internal/gateway"
)

func TestExtensions(t *testing.T) {
	long := strings.Repeat("ä", 600)
	for member, want := range map[string]string{
		`"a text"`: "a text", `""`: "", `7`: "", `{"a":1}`: "", ``: "", `"a\u0000b"`: "", `"` + long + `"`: "",
	} {
		if got := gateway.ExtensionText(json.RawMessage(member)); got != want {
			t.Errorf("the text of %.40s is %.40q, want %q", member, got, want)
		}
	}
	for member, want := range map[string]int{`3`: 3, `"3"`: 3, `-1`: 0, `"x"`: 0, ``: 0, `null`: 0, `99999`: 1000, `99999999999999999999999`: 0} {
		if got := gateway.ExtensionHops(json.RawMessage(member)); got != want {
			t.Errorf("%s hops are %d, want %d", member, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " a \n\t b ": "a b", strings.Repeat("ä", 61): strings.Repeat("ä", 60), strings.Repeat(" ", 500) + "x": "",
	} {
		if got := gateway.Excerpt(text); got != want {
			t.Errorf("the excerpt of %.40q is %q, want %q", text, got, want)
		}
	}
}
