package datadir

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// wantPrior checks which host is known to be dead.
func wantPrior(t *testing.T, dir, want string) {
	t.Helper()
	if got, err := PriorLife(dir); got != want || err != nil {
		t.Errorf("PriorLife() = %q, %v, want %q", got, err, want)
	}
}

// TestLife: the host before is known by its data directory, unless the machine was started since or is
// another one.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wantPrior(t, dir, "")
	life := NewLife(dir)
	mustDo(t, KeepLife(dir, life))
	if runtime.GOOS == "linux" {
		wantPrior(t, dir, life)
	} else {
		wantPrior(t, dir, "") // the system does not name its start
	}
	name, where, _ := strings.Cut(life, " ")
	_, inode, _ := strings.Cut(where, " ")
	for _, other := range []string{name + " another-start " + inode, name + " ", name, ""} {
		mustDo(t, KeepLife(dir, other))
		wantPrior(t, dir, "")
	}
	if NewLife(dir) == life {
		t.Error("two starts have one name")
	}
}

// TestLifeOfCopy: a copy of a data directory on the same machine takes nobody for dead.
func TestLifeOfCopy(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), t.TempDir()
	mustDo(t, KeepLife(dir, NewLife(dir)))
	mustDo(t, os.CopyFS(copied, os.DirFS(dir)))
	wantPrior(t, copied, "")
}
