package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
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
	for member, want := range map[string]int{
		`3`: 3, `"3"`: 3, `-1`: 0, `"x"`: 0, ``: 0, `null`: 0, `true`: 0, `[3]`: 0, `{"a":3}`: 0, `"NaN"`: 0, `"Inf"`: 0, `"0x10"`: 0,
		`99999`: 1000, `99999999999999999999999`: 1000, `1e9`: 1000, `"1e9"`: 1000, `1e999`: 1000, `-1e999`: 0, `3.0`: 3, `2.5`: 3, `1e-999`: 0,
	} {
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

// A trace is added to a copy of the members; without one they stay.
func TestWithTrace(t *testing.T) {
	t.Parallel()
	members := map[string]json.RawMessage{"x_hops": json.RawMessage("1")}
	trace := swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", `a=b\"c`)
	got := gateway.WithTrace(members, "x_", trace)
	if len(members) != 1 || string(got["x_traceparent"]) != `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"` || string(got["x_hops"]) != "1" {
		t.Errorf("%s of %s", got, members)
	}
	for name, raw := range got {
		if !json.Valid(raw) {
			t.Errorf("%s is no JSON: %s", name, raw)
		}
	}
	if got := gateway.WithTrace(nil, "", swarm.Trace{}); got == nil || len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
}
