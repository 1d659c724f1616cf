package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	c, err := Load("testdata/valid/minimal.toml", testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.Abs("testdata/valid"); c.Dir != want || c.File != "testdata/valid/minimal.toml" {
		t.Errorf("Dir %s, File %s", c.Dir, c.File)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	if _, err := Load("testdata/absent.toml", testOptions); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	var faults Faults
	if _, err := Load("testdata", testOptions); err == nil || errors.As(err, &faults) {
		t.Errorf("directory: %v", err)
	}
	if _, err := Load("testdata/faults/empty.toml", testOptions); !errors.As(err, &faults) || len(faults) != 3 {
		t.Errorf("faulty file: %v", err)
	}
}

func TestLoadLargeFile(t *testing.T) {
	t.Parallel()
	minimal := readValid(t, "minimal.toml")
	path := filepath.Join(t.TempDir(), "swarm.toml")
	for _, tt := range []struct {
		size int
		want string
	}{{maxText, ""}, {maxText + 1, path + ":1:1: the file has more than 1048576 bytes"}} {
		text := minimal + strings.Repeat("#", tt.size-len(minimal))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, testOptions)
		if got := errText(err); got != tt.want {
			t.Errorf("%d bytes: %s, want %s", tt.size, got, tt.want)
		}
	}
}

func TestReferencedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ok", "text\r\n")
	write("large", strings.Repeat("x", maxReferenced+1))
	write("binary", "\xff\xfe")
	for _, tt := range []struct{ ref, want, wantErr string }{
		{"file::ok", "text", ""},
		{"file::" + filepath.Join(dir, "ok"), "text", ""},
		{"file::sub/../ok", "text", ""},
		{"file::large", "", `file "large" has more than 1048576 bytes`},
		{"file::binary", "", `file "binary" is not UTF-8 text`},
		{"file::absent", "", `file "absent" does not exist: nothing is at ` + filepath.Join(dir, "absent")},
		{"file::.", "", `file "." is not a regular file`},
		{"file::ok/under", "", `file "ok/under" cannot be read: not a directory`},
	} {
		d := &decoder{src: newSource("f", ""), dir: dir}
		v, ok := d.resolve(location{node: &node{}}, tt.ref)
		message := strings.TrimPrefix(d.faults.Error(), "f:1:1: ")
		if ok != (tt.wantErr == "") || message != tt.wantErr || ok && v.text != tt.want {
			t.Errorf("%s = %q, %q", tt.ref, v.text, message)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHostileText(t *testing.T) {
	t.Parallel()
	minimal := readValid(t, "minimal.toml")
	deep := maxText/2 - 100
	for _, tt := range []struct{ name, text, want string }{
		{"byte order mark", "\uFEFF" + minimal, ""},
		{"two byte order marks", "\uFEFF\uFEFF" + minimal, "1:1: a second byte order mark"},
		{"CRLF", strings.ReplaceAll(minimal, "\n", "\r\n"), ""},
		{"invalid UTF-8", minimal + "# caf\xe9\n", "9:6: byte 0xe9 is not UTF-8"},
		{"replacement character", minimal + "# \uFFFD\n", ""},
		{"UTF-16", "\xff\xfes\x00", "1:1: byte 0xff is not UTF-8"},
		{"NUL", minimal + "\x00", "9:1: control character 0x00"},
		{"lone CR", minimal + "# a\rb", "9:4: a carriage return stands without a newline"},
		{"DEL", "schema = 1 # \x7f", "1:14: control character 0x7f"},
		{"column in characters", "schema = 1 # été \x01", "1:18: control character 0x01"},
		{"arrays", "a = " + strings.Repeat("[", deep) + strings.Repeat("]", deep), "1:37: more than 32 levels of tables and arrays"},
		{"inline tables", "a = " + strings.Repeat("{a=", maxText/4), "1:100: more than 32 levels of tables and arrays"},
		{"dotted key", strings.Repeat("a.", maxText/2-100) + "a = 1", "1:66: more than 32 levels of tables and arrays"},
		{"dotted header", "[" + strings.Repeat("a.", maxText/2-100) + "a]", "1:67: more than 32 levels of tables and arrays"},
		{"broken before the depth", "a = b = ]\n" + strings.Repeat("[", deep), "1:9: text that is not TOML"},
		{"long key", "[" + strings.Repeat("a", maxText/2) + "]\n" + strings.Repeat("b=1\n", 1000), "1:524290: a key whose full path has more than 1024 bytes"},
		{"elements", "a = [" + strings.Repeat("1,", 200_000) + "]", "1:131076: more than 65536 keys and elements"},
		{"tables", strings.Repeat("[[a]]\n", 150_000), "65536:6: more than 65536 keys and elements"},
		{"open string", "schema = \"", "1:10: unexpected EOF; expected '\"'"},
		{"open array", "schema = [", "1:10: unexpected EOF; expected value"},
	} {
		_, err := Parse("f", []byte(tt.text), "testdata/valid", testOptions)
		if got := strings.TrimPrefix(errText(err), "f:"); got != tt.want {
			t.Errorf("%s: %.200s, want %s", tt.name, got, tt.want)
		}
	}
}

// A text at the limits of what is read costs little, whatever is wrong with it.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	minimal := readValid(t, "minimal.toml")
	var keys, agents, targets strings.Builder
	for i := range 8_000 {
		fmt.Fprintf(&keys, "k%d=1\n", i)
	}
	for i := range 600 {
		fmt.Fprintf(&agents, "[agents.a%d]\nsource = \"bundled:script\"\ncomm_targets = [\"b%d\", \"a%d\"]\n", i, i, i)
		fmt.Fprintf(&targets, "\"x%d\", ", i)
	}
	for _, tt := range []struct{ name, text string }{
		{"unknown keys", minimal + keys.String()},
		{"unknown keys below a long path", minimal + "[agents.a." + strings.Repeat("n", 900) + "]\n" + keys.String()},
		{"elements of a wrong type in one line", minimal + "comm_targets = [" + strings.Repeat("1,             ", 30_000) + "]"},
		{"agents and targets", minimal + agents.String()},
		{"targets of one agent", minimal + "comm_targets = [" + targets.String() + "]"},
	} {
		_, err := Parse("f", []byte(tt.text), "testdata/valid", testOptions)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > maxFaults+1 {
			t.Errorf("%s: %d faults", tt.name, len(faults))
		}
		if len(faults) > maxFaults && !strings.Contains(faults[maxFaults].Message, "more than 1000 faults") {
			t.Errorf("%s: last fault is %v", tt.name, faults[maxFaults])
		}
	}
}

// What runs turns again needs no keys, secrets or addresses; the faults of what
// it does need are told.
func TestLoadModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "swarm.toml")
	text := `schema = 1
[agents.a]
source = "file:a.wasm"
unknown = 1
[limits.module]
size = "1 MiB"
[server]
listen = "env::NOT_SET"
[secrets.api]
value = "env::NOT_SET"
[[auth.keys]]
key = "env::NOT_SET"
`
	for name, content := range map[string]string{"a.wasm": "", "swarm.toml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadModules(path, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if c.Dir != dir || len(c.Agents) != 1 || c.Agents[0].Name != "a" || c.Agents[0].Source.Path != filepath.Join(dir, "a.wasm") || c.Limits.Module.Size != int64(MiB) {
		t.Errorf("%+v, %+v", c.Agents, c.Limits.Module)
	}
	if err := os.WriteFile(path, []byte(text+"[store]\nkeyring = \"env::NOT_SET\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ":14:11: the environment variable NOT_SET is not set"
	if _, err := LoadModules(path, testOptions); errText(err) != want {
		t.Errorf("%s, want %s", errText(err), want)
	}
	if _, err := LoadModules(filepath.Join(dir, "absent"), testOptions); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}
