package pathcheck

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSize(t *testing.T) {
	t.Parallel()
	_, file := tree(t)
	for most, want := range map[int64]bool{0: false, 4: false, 5: true} {
		raw, err := ReadFile(file, most)
		var large *SizeError
		if want != (err == nil) || !want && (!errors.As(err, &large) || large.Size != 5 || large.Max != most) {
			t.Errorf("at most %d: %q, %v", most, raw, err)
		}
	}
	must(t, os.Truncate(file, 100<<30)) // a hole: it takes no room on the disk
	for _, read := range []func(string, int64) ([]byte, error){ReadFile, ReadAny} {
		_, err := read(file, 16<<20)
		if err == nil || err.Error() != file+" has 107374182400 bytes, at most 16777216 are read" {
			t.Errorf("100 GiB: %v", err)
		}
	}
}

// ReadAny takes what others can write to, and nothing but files.
func TestReadAny(t *testing.T) {
	t.Parallel()
	dir, file := tree(t)
	must(t, os.Chmod(file, 0o666))
	must(t, os.Chmod(dir, 0o777))
	if raw, err := ReadAny(file, most); err != nil || string(raw) != "bytes" {
		t.Errorf("%q, %v", raw, err)
	}
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o644))
	for path, want := range map[string]string{
		dir: "it is a directory", pipe: "it is a pipe", os.DevNull: "it is a device", filepath.Join(file, "x"): file + " is not a directory",
	} {
		_, err := ReadAny(path, most)
		var unfit *UnfitError
		if !errors.As(err, &unfit) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestOpenOwn(t *testing.T) {
	t.Parallel()
	_, file := tree(t)
	f, info, err := OpenOwn(file)
	if err != nil || info.Size() != 5 {
		t.Fatalf("%v, %v", info, err)
	}
	must(t, f.Close())
	must(t, os.Chmod(file, 0o664)) // for our own group, if that is private
	_, _, err = OpenOwn(file)
	refused(t, err, "run chmod go-w "+file)
}
