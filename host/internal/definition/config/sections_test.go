package config

import (
	"slices"
	"strings"
	"testing"
)

// keysOf are the settings that the tables of a section have: its own, and those of other
// sections for the same tables.
func keysOf(section Section) (all []Setting) {
	for _, other := range Sections() {
		if matches(other.Name, section.Name) || matches(section.Name, other.Name) {
			all = append(all, other.Settings...)
		}
	}
	return all
}

// matches reports whether a section's name, in which NAME is any name, is that of a table.
func matches(section, table string) bool {
	pattern, path := strings.Split(section, "."), strings.Split(table, ".")
	return slices.EqualFunc(pattern, path, func(p, name string) bool { return p == name || strings.TrimSuffix(p, "]") == "NAME" })
}

// TestDeclaredKeysAreRead: no key of the page is unknown to the reader of its table.
func TestDeclaredKeysAreRead(t *testing.T) {
	t.Parallel()
	for _, section := range Sections() {
		for _, s := range section.Settings {
			name := strings.Replace(section.Name, "[gateways.NAME", "[gateways.a2a", 1)
			text := name + "\n" + lineOf(s)
			if s.Operator && section.Name == "[actions.NAME]" {
				text += `source = "builtin:fs"`
			}
			_, err := Parse("swarm.toml", []byte(text), "testdata/valid", testOptions)
			if err == nil || strings.Contains(err.Error(), "unknown key") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// lineOf gives a key some value, and those below it too.
func lineOf(s Setting) string {
	text := ""
	for _, sub := range s.Nested {
		text += s.Key + "." + lineOf(sub)
	}
	if text == "" {
		text = s.Key + " = 0\n"
	}
	return text
}

// TestReadKeysAreDeclared: every key of the whole grammar is on the page, and each key
// there has what the page says of it.
func TestReadKeysAreDeclared(t *testing.T) {
	t.Parallel()
	values, _, fault := read(newSource("whole.toml", readValid(t, "whole.toml")))
	if fault != nil {
		t.Fatal(fault)
	}
	sections := map[string]bool{"schema": true}
	for _, s := range Sections() {
		path := strings.Split(strings.Trim(s.Name, "[]"), ".")
		sections[path[0]] = true
		tables := tablesAt([]map[string]any{values}, path)
		if len(tables) == 0 && path[0] != "mcp" && path[0] != "cluster" { // they have files of their own
			t.Errorf("%s is not in the file", s.Name)
		}
		checkTables(t, s.Name, keysOf(s), tables)
	}
	for name := range values {
		if !sections[name] {
			t.Errorf("[%s] is not declared", name)
		}
	}
}

// tablesAt finds all tables at a path, in which NAME is any name.
func tablesAt(in []map[string]any, path []string) (out []map[string]any) {
	if len(path) == 0 {
		return in
	}
	for _, table := range in {
		for key, v := range table {
			if key != path[0] && path[0] != "NAME" {
				continue
			}
			switch v := v.(type) {
			case map[string]any:
				out = append(out, tablesAt([]map[string]any{v}, path[1:])...)
			case []map[string]any:
				out = append(out, tablesAt(v, path[1:])...)
			}
		}
	}
	return out
}

func checkTables(t *testing.T, name string, settings []Setting, tables []map[string]any) {
	t.Helper()
	declared := map[string]bool{}
	for _, s := range settings {
		declared[s.Key] = true
		if s.About == "" || s.Kind == "" {
			t.Errorf("%s %s: nothing for the page", name, s.Key)
		}
		if s.Nested != nil {
			checkTables(t, name+"."+s.Key, s.Nested, tablesAt(tables, []string{s.Key}))
		}
	}
	for _, table := range tables {
		for key := range table {
			if isPartners := key == "partners" && strings.HasPrefix(name, "[gateways."); !declared[key] && !isPartners {
				t.Errorf("%s: %s is not declared", name, key)
			}
		}
	}
}
