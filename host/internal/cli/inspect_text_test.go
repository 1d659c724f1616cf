package cli

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"skep/abi"
)

// What inspect offers to paste is TOML, with what the module and its path say
// and nothing else.
func TestUseIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ agent, source, name string }{
		{"weather", "file:weather.wasm", "weather"},
		{"", "bundled:script", "script-1"},
		{"Ann_2", `file:C:\a "b".wasm`, "Ann_2"},
		{"x]\nsource = \"exec:./evil\"", "file:a\nsha256 = \"0\"", "x--source----exec---evil-"},
		{"ü", "file:\u2028.wasm", "agent"},
		{strings.Repeat("a", 100), "file:\x00\u202e.wasm", strings.Repeat("a", 64)},
	} {
		i := newInspection("x.wasm", tt.source, nil)
		d := &abi.Descriptor{Name: "script.1", Version: "1"}
		if tt.agent != "" {
			d.Agents = []abi.AgentDescriptor{{Name: tt.agent}}
		}
		i.describe(d)
		_, block, _ := strings.Cut(i.text(style{}), "use it")
		var got struct {
			Agents map[string]map[string]string
		}
		if _, err := toml.Decode(block, &got); err != nil {
			t.Errorf("%q: %v in\n%s", tt.agent, err, block)
		}
		agent := got.Agents[tt.name]
		if len(got.Agents) != 1 || len(agent) != 2 || agent["source"] != tt.source || agent["sha256"] != i.SHA256 {
			t.Errorf("%q of %q: got %q from\n%s", tt.agent, tt.source, got.Agents, block)
		}
	}
}

// A name that a module imports cannot make lines of its own.
func TestImportLinesOfStrangeNames(t *testing.T) {
	t.Parallel()
	got := importLines([]string{"a.one\nuse it    b", "a.\u2028"})
	if want := `a: one\nuse it    b, \u2028`; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
