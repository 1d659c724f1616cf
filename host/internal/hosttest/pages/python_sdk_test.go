package pages_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/guests"
)

// A slip of an author in Python is told in words, without a traceback of the SDK's own.
func TestPythonSDKTellsSlips(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	sdk := filepath.Join(guests.Root(), "sdk", "python")
	number := "import sys; sys.path.insert(0, sys.argv[1]); import ops\ntry: print(ops.number(sys.argv[2]))\nexcept ValueError as err: print(err)"
	program := filepath.Join(t.TempDir(), "program")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-c", number, filepath.Join(sdk, "skep"), "kv.get"}, "20\n"},
		{[]string{"-c", number, filepath.Join(sdk, "skep"), "kv.gte"}, "there is no op 'kv.gte', did you mean \"kv.get\"?\n"},
		{[]string{"-c", number, filepath.Join(sdk, "skep"), "zzzzzz"}, "there is no op 'zzzzzz'; skep.OPS names all\n"},
		{[]string{filepath.Join(sdk, "build.py"), "nowhere.py", program}, "nowhere.py: No such file or directory\n"},
	} {
		cmd := exec.CommandContext(t.Context(), python, append([]string{"-B"}, c.args...)...)
		if out, _ := cmd.CombinedOutput(); string(out) != c.want {
			t.Errorf("%s\n%s", strings.Join(c.args, " "), out)
		}
	}
}
