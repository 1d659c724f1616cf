package sqlite

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"skep/host/internal/store/keyring"
)

func testKEK(b byte) []byte { return bytes.Repeat([]byte{b}, keyring.KEKSize) }

func wantRewrap(t *testing.T, dir string, from, to []byte, want bool) {
	t.Helper()
	n, changed, err := Rewrap(dir, from, to)
	if n != 2 || changed != want || err != nil {
		t.Errorf("Rewrap() = %d, %t, %v, want 2, %t", n, changed, err, want)
	}
}

func TestRewrap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	plant(t, s, "acme", "t1", planted)
	plant(t, s, "other", "t1", planted)
	before := export(t, s, "acme")
	if _, _, err := Rewrap(dir, nil, testKEK(1)); !errors.Is(err, ErrInUse) {
		t.Errorf("Rewrap in use = %v", err)
	}
	mustDo(t, s.Close())
	wantRewrap(t, dir, nil, nil, false)
	wantRewrap(t, dir, nil, testKEK(1), true)
	wantRewrap(t, dir, testKEK(1), testKEK(2), true)
	wantRewrap(t, dir, testKEK(1), testKEK(2), false)
	wantRewrap(t, dir, testKEK(2), testKEK(2), false)
	refusedWith(t, dir, &keyring.Options{KEK: testKEK(1)}, "not the one")
	for _, wrong := range [][]byte{nil, testKEK(1)} {
		if _, _, err := Rewrap(dir, wrong, testKEK(3)); !errors.Is(err, keyring.ErrWrapped) && !errors.Is(err, keyring.ErrWrongKEK) {
			t.Errorf("Rewrap from a wrong key = %v", err)
		}
	}
	wantRewrap(t, dir, testKEK(2), nil, true)
	// A key that wraps nothing is no reason to fail, nor to wrap with it.
	wantRewrap(t, dir, testKEK(2), nil, false)
	s = openSealed(t, dir, &keyring.Options{})
	if export(t, s, "acme") != before {
		t.Error("the export is another after all that wrapping")
	}
}

func TestRewrapNothing(t *testing.T) {
	t.Parallel()
	if _, _, err := Rewrap(t.TempDir(), nil, testKEK(1)); err == nil {
		t.Error("Rewrap without a keyring succeeded")
	}
	if _, _, err := Rewrap(filepath.Join(t.TempDir(), "none"), nil, testKEK(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Rewrap of no directory = %v", err)
	}
}

// keysInFile returns the keys of a tenant as its keyring's file has them.
func keysInFile(t *testing.T, dir, tenant string) (found []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, keyringName))
	mustDo(t, err)
	for _, m := range regexp.MustCompile(`"tenant":"`+tenant+`"[^}]*"key":"([^"]+)"`).FindAllSubmatch(b, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// The bytes of a destroyed key are in no file any more, in whatever form.
func TestDestroyedKeyIsNowhere(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": {}, "wrapped": {KEK: testKEK(1)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir, keys)
			plant(t, s, "acme", "t1", planted)
			mustDo(t, s.Rotate(t.Context(), "acme"))
			plant(t, s, "other", "t1", planted)
			gone := keysInFile(t, dir, "acme")
			if len(gone) != 2 {
				t.Fatalf("acme has %d keys, want 2", len(gone))
			}
			mustDo(t, s.Erase(t.Context(), "acme"))
			for _, key := range gone {
				raw, err := base64.StdEncoding.DecodeString(key)
				mustDo(t, err)
				if found := append(holders(t, dir, key), holders(t, dir, string(raw))...); found != nil {
					t.Errorf("a destroyed key is still in %q", found)
				}
			}
			if kept := keysInFile(t, dir, "other"); len(kept) != 1 {
				t.Errorf("the other tenant has %d keys", len(kept))
			}
		})
	}
}

// Reading a directory changes nothing in it, though a wrapping key that
// was configured meanwhile is due.
func TestReaderLeavesKeyring(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	plant(t, s, "acme", "t1", planted)
	path := filepath.Join(dir, keyringName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	mustDo(t, err)
	_, err = f.WriteString("the beginning of a key")
	mustDo(t, errors.Join(err, f.Close()))
	before, err := os.ReadFile(path)
	mustDo(t, err)
	r, err := OpenReader(t.Context(), dir, Options{Keyring: &keyring.Options{KEK: testKEK(1)}})
	mustDo(t, err)
	defer r.Close()
	ring, used, err := r.Keys(t.Context())
	if len(used) != 1 || len(ring.Entries()) != 1 || ring.Wrapped() || err != nil {
		t.Errorf("%d of %d keys are used, %v", len(used), len(ring.Entries()), err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the keyring has changed, %v", err)
	}
}
