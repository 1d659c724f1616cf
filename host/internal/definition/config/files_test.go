package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fileActions = `schema = 1
[swarm]
name = "desk"
entrypoint = "clerk"
[agents.clerk]
source = "file:clerk.wasm"
enable_entrypoint = true
can_complete_tasks = true
actions = ["read_file", "save"]
[actions.read_file]
source = "builtin:fs"
root = "notes"
[actions.save]
source = "builtin:fs/write_file"
root = "link"
write = true
max_total = "1MiB"
timeout = "5s"
allow = { retry_in_doubt = false }
[actions.book]
source = "file:clerk.wasm"
limits = { memory = "1MiB" }
[actions.ask]
source = "human"
description = "d"
parameters = {}
`

// fileDir is a directory that the file fits, without links on the way.
func fileDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "notes"), 0o700), os.Symlink("notes", filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "clerk.wasm"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The effect of an action is one of two words, and does not belie what the host knows of it.
func TestEffects(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	for name, c := range map[string]struct{ before, after, effect, fault string }{
		"a person who writes nothing": {"source = \"human\"", "source = \"human\"\neffect = \"read\"", "read", ""},
		"a reader that writes":        {"source = \"builtin:fs\"", "source = \"builtin:fs\"\neffect = \"write\"", "write", ""},
		"a writer that reads":         {"write = true", "write = true\neffect = \"read\"", "", `actions.save.effect must not be "read": write_file changes files`},
		"another word":                {"source = \"human\"", "source = \"human\"\neffect = \"reads\"", "", `actions.ask.effect must be "write" or "read", not "reads"`},
	} {
		cfg, err := Parse("swarm.toml", []byte(strings.Replace(fileActions, c.before, c.after, 1)), dir, Options{})
		if err != nil || c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) || c.fault == "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		effects := ""
		for _, a := range cfg.Actions {
			effects += a.Effect
		}
		if effects != c.effect {
			t.Errorf("%s: %q", name, effects)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	c, err := Parse("swarm.toml", []byte(fileActions), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(dir, "notes")
	want := []Files{
		{Does: "read_file", Root: notes, MaxFile: MiB},
		{Does: "write_file", Root: notes, Write: true, MaxFile: MiB, MaxTotal: MiB},
		{}, {},
	}
	for i, a := range c.Actions {
		if diff := cmp.Diff(want[i], a.Files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", a.Name, diff)
		}
		if coded := a.Name == "book"; a.Source.Kind.Coded() != coded {
			t.Errorf("%s has code: %t", a.Name, !coded)
		}
	}
	if s := c.Actions[0].Source; s != (Source{Kind: SourceBuiltin, Ref: "fs"}) {
		t.Errorf("%+v", s)
	}
	one := strings.Replace(fileActions, "root = \"link\"\nwrite = true", "root = \"notes\"\nshared = true\nwrite = true", 1)
	if _, err := Parse("swarm.toml", []byte(one), dir, Options{}); err == nil || !strings.Contains(err.Error(), "only one of them is shared") {
		t.Errorf("%v", err)
	}
	both := strings.Replace(one, "root = \"notes\"\n[", "root = \"notes\"\nshared = true\n[", 1)
	if _, err := Parse("swarm.toml", []byte(both), dir, Options{}); err != nil {
		t.Errorf("one tenant may share what agents write: %v", err)
	}
	if _, err := Parse("swarm.toml", []byte(both+"[tenants.acme]\n"), dir, Options{}); err == nil || !strings.Contains(err.Error(), "is not shared by several tenants") {
		t.Errorf("%v", err)
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	for path, want := range map[string]string{
		dir: dir, filepath.Join(dir, "link"): filepath.Join(dir, "notes"), filepath.Join(dir, "link", "a", "b"): filepath.Join(dir, "notes", "a", "b"),
	} {
		if got := Whole(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if !filepath.IsAbs(Whole("none/at/all")) {
		t.Error("a relative path stays so")
	}
}

// Agents do not write to what the host runs, or goes by: the programs of tool servers
// and what was approved of them.
func TestFilesHoldNoCode(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	for _, name := range []string{"notes/server", "server"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for mcp, want := range map[string]string{
		"command = [\"./notes/server\"]\ntrusted = true":                       "notes/server, which agents must not change",
		"command = [\"./server\"]\ntrusted = true\npins = \"notes/pins.json\"": "notes/pins.json, which agents must not change",
	} {
		_, err := Parse("swarm.toml", []byte(fileActions+"[mcp.tools]\n"+mcp+"\n"), dir, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "actions.read_file.root holds") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Agents neither read keys and recorded conversations nor change what they are told.
func TestFilesHoldNothingOfTheFile(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	for _, name := range []string{"pages/key", "pages/tape.jsonl", "pages/prompt.md", "notes/prompt.md"} {
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const key = "\n[secrets.key]\nvalue = \"file::pages/key\"\nhosts = [\"https://example.com\"]\nheader = \"x-key\"\n"
	file := strings.Replace(fileActions, `root = "notes"`, "root = \"pages\"\nshared = true", 1)
	for _, c := range []struct{ text, want string }{
		{file + key, "actions.read_file.root holds " + dir + "/pages/key"},
		{file + "\n[models.m]\nprovider = \"script\"\ncassette = \"pages/tape.jsonl\"\n", "actions.read_file.root holds " + dir + "/pages/tape.jsonl"},
		{file + "\n[actions.book.params]\nsystem = \"file::notes/prompt.md\"\n", "actions.save.root holds " + dir + "/notes/prompt.md"},
		{file + "\n[actions.book.params]\nsystem = \"file::pages/prompt.md\"\n", ""},
	} {
		_, err := Parse("swarm.toml", []byte(c.text), dir, Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// What the file says of files is not in a composition: only the file gives it.
func TestFilesAreNotComposed(t *testing.T) {
	t.Parallel()
	dir := fileDir(t)
	c, err := Parse("swarm.toml", []byte(fileActions), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := c.Composition().JSON()
	if strings.Contains(string(text), dir) || strings.Contains(string(text), "root") {
		t.Errorf("it tells where files are: %s", text)
	}
	none, err := Parse("swarm.toml", []byte(strings.Split(fileActions, "actions =")[0]), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, today := range []*Config{c, none} {
		x, err := today.RecallComposition(text)
		if err != nil {
			t.Fatal(err)
		}
		if a := x.Actions[1]; a.Source != (Source{Kind: SourceBuiltin, Ref: "fs/write_file"}) || a.Files != (Files{}) || a.Allow.RetryInDoubt {
			t.Errorf("%+v", a)
		}
		if got := x.JSON(); string(got) != string(text) && today == c {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// Explain lists what bounds the calls of actions.
func TestExplainActions(t *testing.T) {
	t.Parallel()
	c, err := Parse("swarm.toml", []byte(fileActions), fileDir(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []Limit
	for _, s := range Explain(c) {
		if strings.HasPrefix(s.Key, "actions.") {
			got = append(got, s)
		}
	}
	want := []Limit{
		{"actions.read_file.timeout", "2m", false}, {"actions.read_file.max_file", "1MiB", false},
		{"actions.save.timeout", "5s", true}, {"actions.save.max_file", "1MiB", false}, {"actions.save.max_total", "1MiB", true},
		{"actions.book.timeout", "2m", false}, {"actions.book.limits.memory", "1MiB", true}, {"actions.book.limits.cpu", "10s", false},
		{"actions.book.limits.fuel", "200000000000", false}, {"actions.book.limits.output", "1MiB", false}, {"actions.book.limits.stack", "8MiB", false},
		{"actions.book.limits.host_calls", "1000", false}, {"actions.book.limits.host_bytes", "16MiB", false}, {"actions.book.limits.grace", "250ms", false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]any{
		"":                {},
		"a":               {"a"},
		"a.b[2].c":        {"a", "b", 2, "c"},
		`a["b.c"][0]`:     {"a", "b.c", 0},
		`["x"].y`:         {"x", "y"},
		`a["long"…]`:      {"a"},
		"a[":              {"a"},
		"a[x]":            {"a"},
		"a..b":            {"a"},
		`a["\u00e9"]["]`:  {"a", "é"},
		"tools.include[1": {"tools", "include"},
	} {
		got := append([]any{}, Steps(path)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func FuzzSteps(f *testing.F) {
	f.Add(`a["b.c"][0].d…`)
	f.Fuzz(func(t *testing.T, path string) {
		if n := len(Steps(path)); n > len(path) {
			t.Errorf("%d steps of %q", n, path)
		}
	})
}

// A fault of a param stands at the param, or at the table that lacks it.
func TestParamFault(t *testing.T) {
	t.Parallel()
	text := strings.Replace(fileActions, `actions = ["read_file", "save"]`, "params = { sistem = \"x\",\n  tools = { include = [\"a\",\n  1] } }", 1)
	c, err := Parse("swarm.toml", []byte(text), fileDir(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := []string{"system", "model"}
	for _, tt := range []struct {
		fault Fault
		want  string
	}{
		{c.ParamFault("agents", "clerk", []any{"sistem"}, "is not a known key", known), `swarm.toml:9:12: agents.clerk.params.sistem is not a known key (did you mean "system"?)`},
		{c.ParamFault("agents", "clerk", []any{"tools", "include", 1}, "must be a string", nil), "swarm.toml:11:3: agents.clerk.params.tools.include[1] must be a string"},
		{c.ParamFault("agents", "clerk", []any{"system"}, "is missing", nil), "swarm.toml:9:1: agents.clerk.params.system is missing"},
		{c.ParamFault("agents", "clerk", nil, "is too large", nil), "swarm.toml:9:10: agents.clerk.params is too large"},
		{(&Config{File: "f"}).ParamFault("agents", "clerk", []any{"a", 1}, "is bad", nil), "f:1:1: agents.clerk.params.a[1] is bad"},
	} {
		if got := tt.fault.String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
