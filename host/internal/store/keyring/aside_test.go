package keyring

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second torn end leaves the first where it is, and both go when a key is
// destroyed.
func TestTornAgain(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	mustSeal(t, mustOpen(t, path, nil), "acme", "text")
	for i, want := range []string{path + ".torn", path + ".torn.2", path + ".torn.3"} {
		end := []byte(strings.Repeat("x", i+1))
		mustWrite(t, path, append(mustRead(t, path), end...))
		n, file := mustOpen(t, path, nil).Aside()
		if n != i+1 || file != want || !bytes.Equal(mustRead(t, want), end) {
			t.Errorf("%d bytes are aside in %s, want %d in %s", n, file, i+1, want)
		}
	}
	if first := mustRead(t, path+".torn"); string(first) != "x" {
		t.Errorf("the first torn end is now %q", first)
	}
	if err := mustOpen(t, path, nil).Destroy("acme"); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1 {
		t.Errorf("after a key was destroyed there are %v, %v", list, err)
	}
}

// When all names for torn ends are taken, nothing is lost.
func TestTornTooOften(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	mustSeal(t, mustOpen(t, path, nil), "acme", "text")
	torn := append(mustRead(t, path), 'x')
	mustWrite(t, path, torn)
	for range maxTorn {
		name, err := freeName(path + ".torn")
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, name, nil)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "move them away") {
		t.Errorf("Open() = %v", err)
	}
	if !bytes.Equal(mustRead(t, path), torn) {
		t.Error("the file was changed")
	}
}

// A link would be replaced when a key is destroyed, and what it leads to kept.
func TestLinkRefused(t *testing.T) {
	t.Parallel()
	real := ringPath(t)
	mustSeal(t, mustOpen(t, real, nil), "acme", "text")
	path := ringPath(t)
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{{}, {ReadOnly: true}} {
		if _, err := Open(path, opt); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "put the file itself in its place") {
			t.Errorf("Open(%+v) = %v", opt, err)
		}
	}
	dangling := ringPath(t)
	if err := os.Symlink(filepath.Join(t.TempDir(), "none"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dangling, Options{}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a link to nothing = %v", err)
	}
}

// The directory may be a link: then the file is replaced where it lies.
func TestLinkedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(link, "keyring")
	r := mustOpen(t, path, nil)
	mustSeal(t, r, "acme", "text")
	found := secrets(t, path, "acme")
	if len(found) != 1 {
		t.Fatalf("the file has %d keys", len(found))
	}
	if err := r.Destroy("acme"); err != nil {
		t.Fatal(err)
	}
	wantNowhere(t, dir, found)
}
