package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a killed run has left is removed by the next; what is in use, young, or no
// directory of a run stays.
func TestSweepRunDirs(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	old := time.Now().Add(-2 * youngDir)
	leave := func(name string, at time.Time) string {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	killed, young, other := leave(runDirs+"1", old), leave(runDirs+"2", time.Now()), leave("skep-other", old)
	used, remove, err := makeRunDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(used, old, old); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(temp, runDirs+"link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	sweepRunDirs()
	if _, err := os.Lstat(killed); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", killed, err)
	}
	for _, dir := range []string{young, filepath.Join(other, "below"), used, link} {
		if _, err := os.Lstat(dir); err != nil {
			t.Errorf("gone: %v", err)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(used); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", used, err)
	}
}

func TestNoPlaceForARun(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	sweepRunDirs()
	if _, _, err := makeRunDir(); err == nil {
		t.Error("a directory was made nowhere")
	}
	if _, err := markDir(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("nothing was marked")
	}
	dir := t.TempDir()
	first, err := markDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if second, err := markDir(dir); err == nil {
		t.Error("marked twice", second.Close())
	}
}
