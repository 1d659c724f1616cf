package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse holds that no text makes Parse panic, that every fault is placed
// within the text, that what is accepted keeps its promises, and that the
// scanner knows the position of whatever the parser accepts.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkIndex(t, strings.TrimPrefix(text, string(bom)))
		for _, missing := range []map[string]string{refusedCapabilities(), nil} {
			c, err := parse("f", []byte(text), "testdata/valid", testOptions, missing)
			var faults Faults
			switch {
			case err == nil:
				checkConfig(t, c)
			case !errors.As(err, &faults) || len(faults) == 0:
				t.Fatalf("error %v is not Faults", err)
			}
			checkFaults(t, faults, text)
		}
	})
}

func checkFaults(t *testing.T, faults Faults, text string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, f := range faults {
		if f.Line < 1 || f.Line > len(lines) || f.Col < 1 || f.Col > len(lines[f.Line-1])+1 || f.Message == "" {
			t.Errorf("%+v is not within the text", f)
		}
	}
}

func checkConfig(t *testing.T, c *Config) {
	t.Helper()
	entry, ok := c.Agent(c.Swarm.Entrypoint)
	if !ok || !entry.EnableEntrypoint {
		t.Errorf("entrypoint %q", c.Swarm.Entrypoint)
	}
	for _, a := range c.Agents {
		if a.Source.Kind == "" || len(a.Params) == 0 || a.Limits.Memory <= 0 || a.Limits.Turn <= 0 || a.Limits.Fuel <= 0 {
			t.Errorf("agent %+v", a)
		}
	}
	for _, k := range c.Auth.Keys {
		if k.SHA256 == [32]byte{} {
			t.Errorf("key of %s is empty", k.ID)
		}
	}
	Explain(c)
}

// fragments are what FuzzScan builds texts from: random bytes are hardly ever
// TOML, random sequences of its tokens often are.
var fragments = []string{
	"a", "b", "1", " = ", ".", "\n", "[", "]", "[[", "]]", "{", "}", ", ", "\"", "'", "\"\"\"", "'''", "\\", "#",
	" ", "\r\n", "é", "a = 1\n", "\"a b\"", "'c'", "\\\"", "\"\"", "''", "true", "1979-05-27 07:32:00", "1.5e3", "inf",
	"a = [1, 2]\n", "b = { a = 1 }\n", "\\u0041", "\\n", "x = \"", "y = '''", "[a.b]\n", "[[b.c]]\n", "\t",
}

// FuzzScan holds the scanner to the parser on texts made of fragments.
func FuzzScan(f *testing.F) {
	f.Add([]byte{0, 3, 2, 5})
	f.Add([]byte{39, 0, 3, 15, 5, 15, 17, 15, 5, 38})
	f.Fuzz(func(t *testing.T, picks []byte) {
		var b strings.Builder
		for _, p := range picks {
			b.WriteString(fragments[int(p)%len(fragments)])
		}
		checkIndex(t, b.String())
	})
}
