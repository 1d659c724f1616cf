package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A path that leads nowhere is shown whole, with the file that it probably stands for.
func TestAbsentFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calc.wasm", "clerk", "prompt.md"} {
		if err := os.WriteFile(filepath.Join(dir, "build", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string]string{
		`source = "file:build/clac.wasm"`:                                                 `(did you mean "file:build/calc.wasm"?)`,
		`source = "exec:./build/clrk"` + "\ntrusted = true":                               `(did you mean "exec:build/clerk"?)`,
		`source = "file:build/calc.wasm"` + "\nparams = { a = \"file::build/promt.md\" }": `(did you mean "file::build/prompt.md"?)`,
		`source = "file:build/something.wasm"`:                                            "does not exist: nothing is at " + filepath.Join(dir, "build", "something.wasm"),
	} {
		text := "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"a\"\n[agents.a]\nenable_entrypoint = true\ncan_complete_tasks = true\n" + source + "\n"
		_, err := Parse("swarm.toml", []byte(text), dir, testOptions)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

// A peer at a private address is a warning where others can reach this host, unless the
// operator allows it.
func TestPrivatePeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, peer, more string
		warned             bool
	}{
		{"127.0.0.1:8000", "https://10.0.0.9", "", false},
		{"0.0.0.0:8000", "https://10.0.0.9", "", true},
		{"0.0.0.0:8000", "https://localhost:9000", "", true},
		{"0.0.0.0:8000", "https://10.0.0.9", "allow_private = true", false},
		{"0.0.0.0:8000", "https://depot.example", "", false},
	} {
		text := "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"a\"\nenable_interswarm = true\n[agents.a]\nsource = \"bundled:script\"\nenable_entrypoint = true\ncan_complete_tasks = true\n" +
			"[[auth.keys]]\nid = \"o\"\nrole = \"operator\"\nkey = \"env::OPS_KEY\"\n" +
			"[server]\nplain_http = true\nlisten = \"" + c.listen + "\"\n[peers.depot]\nauth_token = \"env::OPS_KEY\"\nbase_url = \"" + c.peer + "\"\n" + c.more + "\n"
		cfg, err := Parse("swarm.toml", []byte(text), ".", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(cfg.Warnings.Error(), "with allow_private = true in [peers.depot]"); warned != c.warned {
			t.Errorf("%+v: %v", c, cfg.Warnings)
		}
	}
}

// A secret that stands in the file is a warning, one that is named is none.
func TestLiteralSecrets(t *testing.T) {
	t.Parallel()
	const text = `schema = 1
[swarm]
name = "hive"
entrypoint = "a"
enable_interswarm = true
[agents.a]
source = "bundled:script"
enable_entrypoint = true
can_complete_tasks = true
[models.m]
provider = "openai"
base_url = "https://models.example"
model = "m"
api_key = KEY
[secrets.s]
value = KEY
hosts = ["https://api.example"]
header = "X-Key"
[peers.depot]
base_url = "https://depot.example"
auth_token = KEY
[[auth.keys]]
id = "alice"
role = "user"
key = KEY
`
	for key, want := range map[string]int{`"0123456789abcdef"`: 4, `"env::OPS_KEY"`: 0} {
		c, err := Parse("swarm.toml", []byte(strings.ReplaceAll(text, "= KEY", "= "+key)), ".", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, w := range c.Warnings {
			if strings.Contains(w.Message, `stands in this file, and whoever reads the file has it; write "env::NAME"`) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d warnings, want %d: %v", key, n, want, c.Warnings)
		}
	}
}
