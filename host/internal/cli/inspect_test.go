package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/turn/wasm"
)

func TestRequestLines(t *testing.T) {
	t.Parallel()
	i := newInspection("x.wasm", "file:x.wasm", nil)
	i.describe(&abi.Descriptor{Requests: []abi.Request{
		{Allow: "llm", Value: json.RawMessage(`["default","large"]`), Reason: "to\nthink", Optional: true},
		{Allow: "secrets", Value: json.RawMessage(`["key"]`), Reason: "to sign"},
	}})
	got := strings.Join(requestLines(i.Requests), "\n")
	want := "would like to spend tokens of the models default, large: to (1 more line)\nneeds to have secrets added to its calls: key: to sign"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestImportLines(t *testing.T) {
	t.Parallel()
	got := strings.Join(importLines([]string{"a.one", "a.two", "b.three"}), "\n")
	if want := "a: one, two\nb: three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := importLines(nil); len(got) != 1 || got[0] != "nothing" {
		t.Errorf("got %q", got)
	}
}

// Nearest first; what is beyond its limit is always shown.
func TestLimitLines(t *testing.T) {
	t.Parallel()
	limits := []limitView{
		{"limits.module.size", 1 << 20, 16 << 20}, {"limits.module.body", 60 << 10, 64 << 10},
		{"limits.module.types", 1, 10}, {"limits.module.tables", 0, 4}, {"limits.module.globals", 1, 100},
	}
	got := strings.Join(limitLines(limits), "\n")
	want := "body 60.0 KiB of 64.0 KiB (94 %)\ntypes 1 of 10 (10 %)\nsize 1.0 MiB of 16.0 MiB (6 %)\n2 others: 1 % or less"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for n := range limits {
		limits[n].Used = 2 * limits[n].Limit
	}
	if got := limitLines(limits); len(got) != len(limits) || got[0] != "size 32.0 MiB of 16.0 MiB (200 %)" {
		t.Errorf("all beyond: %q", got)
	}
}

func TestStartText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]startView{
		"fails within the default limits: trap: x":                                                  {Failed: "trap: x\n"},
		"2.0 MiB of memory; every turn starts it anew, because y":                                   {Memory: 2 << 20, Anew: "y"},
		"2.0 MiB of memory, kept as an image of 1.0 KiB; reset by copying back what a turn changed": {Memory: 2 << 20, Image: 1 << 10, Reset: wasm.ResetCopy},
	} {
		if got := s.text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, way := range []wasm.Reset{wasm.ResetCopy, wasm.ResetPages, wasm.ResetMixed} {
		if s := (&startView{Reset: way}); strings.HasSuffix(s.text(), "reset by ") {
			t.Errorf("%s has no words", way)
		}
	}
}

// many is a module with more imports than may be, and no other fault.
func many(imports int) string {
	section := func(id byte, content string) string {
		return string([]byte{id, byte(len(content) | 0x80), byte(len(content) >> 7)}) + content
	}
	return "\x00asm\x01\x00\x00\x00" + section(1, "\x01\x60\x00\x00") +
		section(2, string(rune(imports))+strings.Repeat("\x01a\x01b\x00\x00", imports))
}

// A module that is refused shows what it is, and why.
func TestInspectRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, tt := range map[string]struct{ content, step, key, shown string }{
		"text.wasm":  {"this is no module", "admit", "", "size      17 bytes\n"},
		"many.wasm":  {many(65), "admit", "limits.module.imports", "limits    imports 65 of 64 (102 %)\n"},
		"other.wasm": {many(1), "abi", "", "imports   a: b\n"},
	} {
		write(t, dir, file, tt.content)
		s := newShell(nil)
		i, err := newApp(s.Env).inspect(t.Context(), filepath.Join(dir, file), true)
		if err != nil {
			t.Fatal(err)
		}
		if i.Refused == nil || string(i.Refused.Step) != tt.step || i.Refused.Key != tt.key || i.Refused.Reason == "" {
			t.Errorf("%s: refused as %+v", file, i.Refused)
		}
		if f := explain(i.refusal); f.code != exitRefused {
			t.Errorf("%s: exit code %d", file, f.code)
		}
		text := i.text(style{})
		for _, want := range []string{"refused   (" + tt.step + ") ", "sha256    ", tt.shown} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", file, want, text)
			}
		}
		if strings.Contains(text, "use it") {
			t.Errorf("%s: it is offered for use", file)
		}
	}
}

// A module's own texts can neither change the terminal nor look like a
// line of ours.
func TestInspectionEscapes(t *testing.T) {
	t.Parallel()
	i := newInspection("x.wasm", "file:x.wasm", nil)
	i.Descriptor = &abi.Descriptor{
		Name: "a\x1b[2J", Version: "1", Description: "one\nrefused   two\u202e", Agents: []abi.AgentDescriptor{{Name: "b\n", Description: "\x07"}},
	}
	i.Requests = []requestView{{To: "call \x1b", Reason: "it is\nfun"}}
	i.Imports = []string{"env.\x1b"}
	i.Limits = []limitView{{Key: "limits.module.size", Used: 1, Limit: 2}}
	got := i.text(style{})
	for _, want := range []string{
		"module    a\\x1b[2J 1: one\n          refused   two\\u202e\n", "agents    b\n          : \\a\n",
		"asks for  needs to call \\x1b: it is (1 more line)\n", "imports   env: \\x1b\n", "[agents.b-]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
