package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
)

// inProgram has the module script, as a program with modules in it has.
type inProgram struct{ script []byte }

func (p inProgram) Names() []string { return []string{"script"} }

func (p inProgram) Read(name string) ([]byte, error) {
	if name != "script" {
		return nil, fs.ErrNotExist
	}
	return p.script, nil
}

// A program that lies alone runs bundled modules; those of a directory beside it win.
func TestModulesInTheProgram(t *testing.T) {
	dir, beside := t.TempDir(), filepath.Join(t.TempDir(), "plugins")
	script := guests.Bytes(t, "plugins/script")
	file := filepath.Join(dir, "swarm.toml")
	const text = "schema = 1\n[swarm]\nname = \"hive\"\nentrypoint = \"boss\"\n[agents.boss]\nsource = \"bundled:script\"\nenable_entrypoint = true\ncan_complete_tasks = true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	main := func(args ...string) (int, *shell) {
		s := newShell(nil, append(args, "-c", file)...)
		s.Plugins, s.Bundled, s.Cache = beside, inProgram{script}, guests.CacheDir(t)
		return Main(t.Context(), s.Env), s
	}
	if code, s := main("run", "hello"); code != exitOK || !strings.Contains(s.stdout.String(), "boss got [New Message] hello") {
		t.Errorf("run: %d\n%s%s", code, s.stdout.String(), s.stderr.String())
	}
	if code, s := main("validate", "--explain"); code != exitOK || !strings.Contains(s.stdout.String(), "bundled:script, in the program") {
		t.Errorf("validate: %d\n%s%s", code, s.stdout.String(), s.stderr.String())
	}
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(beside, "script.wasm"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, s := main("validate", "--explain"); code != exitOK || !strings.Contains(s.stdout.String(), "bundled:script, from plugins/script.wasm beside the program") {
		t.Errorf("validate: %d\n%s%s", code, s.stdout.String(), s.stderr.String())
	}
}
