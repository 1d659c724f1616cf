package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that cannot be used is named with the reason and what to do, and without the name
// of a file that only the command knows.
func TestUnusableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := filepath.Join(dir, "a.acp.PART")
	for _, c := range []struct {
		path, done string
		err        error
		code       int
		want, hint string
	}{
		{"a.acp", "read", &fs.PathError{Op: "open", Path: "a.acp", Err: syscall.ENOENT}, exitNotFound, "there is no file a.acp (", ""},
		{filepath.Join(dir, "a.acp"), "written", &fs.PathError{Op: "open", Path: part, Err: syscall.EACCES}, exitFailed, "a.acp cannot be written: permission denied", "the right to it"},
		{filepath.Join(dir, "a.acp"), "written", &os.LinkError{Op: "rename", Old: part, New: dir, Err: syscall.EROFS}, exitFailed, "a.acp cannot be written: read-only file system", ""},
		{dir, "read", &fs.PathError{Op: "read", Path: dir, Err: syscall.EISDIR}, exitFailed, "cannot be read: is a directory", "name a file"},
		{"-", "read", usagef("the text on stdin is too long"), exitUsage, "the text on stdin is too long", ""},
	} {
		var f *failure
		err := unusableFile(c.path, c.done, c.err)
		if !errors.As(err, &f) || f.code != c.code || !strings.Contains(err.Error(), c.want) || !strings.Contains(f.hint, c.hint) || strings.Contains(err.Error(), "PART") {
			t.Errorf("%s: %v (%d, %s)", c.path, err, f.code, f.hint)
		}
	}
}
