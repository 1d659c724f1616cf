package keyring

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var testTime = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

func mustOpen(t *testing.T, path string, kek []byte) *Ring {
	t.Helper()
	r, err := Open(path, Options{KEK: kek, Now: func() time.Time { return testTime }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustSeal(t *testing.T, r *Ring, tenant, text string) []byte {
	t.Helper()
	s, err := r.Sealer(tenant)
	if err != nil {
		t.Fatal(err)
	}
	return s.Seal(nil, []byte(text), []byte("place"))
}

func wantText(t *testing.T, r *Ring, sealed []byte, want string) {
	t.Helper()
	got, err := r.Open(nil, sealed, []byte("place"))
	if err != nil || string(got) != want {
		t.Errorf("Open() = %q, %v, want %q", got, err, want)
	}
}

func ringPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "keyring")
}

func kek(b byte) []byte { return bytes.Repeat([]byte{b}, KEKSize) }

func TestSealOpen(t *testing.T) {
	t.Parallel()
	for name, k := range map[string][]byte{"plain": nil, "wrapped": kek(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ringPath(t)
			r := mustOpen(t, path, k)
			if r.Exists() {
				t.Error("a new ring has a file")
			}
			a, b := mustSeal(t, r, "acme", "text"), mustSeal(t, r, "other", "text")
			wantText(t, r, a, "text")
			again := mustOpen(t, path, k)
			if !again.Exists() {
				t.Error("the ring has no file")
			}
			wantText(t, again, a, "text")
			wantText(t, again, b, "text")
			c := mustSeal(t, again, "acme", "text")
			if bytes.Equal(a[:4], b[:4]) || !bytes.Equal(a[:4], c[:4]) || bytes.Equal(a[4:16], c[4:16]) {
				t.Error("tenants share a key, or two rings a salt")
			}
			if len(a) != len("text")+Overhead {
				t.Errorf("%d bytes sealed are %d", len("text"), len(a))
			}
		})
	}
}

func TestOpenRefusesSealed(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, ringPath(t), nil)
	good := mustSeal(t, r, "acme", "text")
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		want := ErrSealed
		if i < idSize {
			want = ErrUnknown
		}
		if _, err := r.Open(nil, bad, []byte("place")); !errors.Is(err, want) {
			t.Errorf("Open with byte %d changed = %v, want %v", i, err, want)
		}
	}
	for n := range good {
		if _, err := r.Open(nil, good[:n], []byte("place")); err == nil {
			t.Errorf("Open of %d bytes succeeded", n)
		}
	}
	if _, err := r.Open(nil, good, []byte("elsewhere")); !errors.Is(err, ErrSealed) {
		t.Errorf("Open in another place = %v", err)
	}
}

// Nonces never repeat: neither in one ring nor in two that read the same file.
func TestNonces(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	mustSeal(t, mustOpen(t, path, nil), "acme", "")
	seen := map[string]bool{}
	for range 3 {
		r := mustOpen(t, path, nil)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 500 {
					s, err := r.Sealer("acme")
					if err != nil {
						t.Error(err)
						return
					}
					head := string(s.Seal(nil, nil, nil)[:headerSize])
					mu.Lock()
					if seen[head] {
						t.Error("a nonce repeats")
					}
					seen[head] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	old := mustSeal(t, r, "acme", "old")
	if err := r.Rotate("acme"); err != nil {
		t.Fatal(err)
	}
	fresh := mustSeal(t, r, "acme", "fresh")
	oldID, _ := KeyOf(old)
	freshID, _ := KeyOf(fresh)
	for _, r := range []*Ring{r, mustOpen(t, path, nil)} {
		wantText(t, r, old, "old")
		wantText(t, r, fresh, "fresh")
		if r.State(oldID) != Retired || r.State(freshID) != Current || r.State(oldID+1) != Unknown {
			t.Errorf("states are %v and %v", r.State(oldID), r.State(freshID))
		}
		if got := r.Retired(testTime); len(got) != 0 {
			t.Errorf("Retired before it was = %v", got)
		}
		if got := r.Retired(testTime.Add(1)); len(got) != 1 || got[0] != oldID {
			t.Errorf("Retired() = %v, want %v", got, oldID)
		}
	}
	if n, err := r.Drop(oldID, freshID); n != 1 || err != nil {
		t.Fatalf("Drop() = %d, %v", n, err)
	}
	if _, err := r.Open(nil, old, []byte("place")); !errors.Is(err, ErrDestroyed) {
		t.Errorf("Open of what a dropped key sealed = %v", err)
	}
	wantText(t, r, fresh, "fresh")
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, nil)
	old := mustSeal(t, r, "acme", "old")
	if err := r.Rotate("acme"); err != nil {
		t.Fatal(err)
	}
	current, other := mustSeal(t, r, "acme", "current"), mustSeal(t, r, "other", "other")
	gone := secrets(t, path, "acme")
	if len(gone) != 2 {
		t.Fatalf("acme has %d keys, want 2", len(gone))
	}
	if err := errors.Join(r.Destroy("acme"), r.Destroy("acme"), r.Destroy("nobody")); err != nil {
		t.Fatal(err)
	}
	fresh := mustSeal(t, r, "acme", "fresh")
	for _, r := range []*Ring{r, mustOpen(t, path, nil)} {
		for _, sealed := range [][]byte{old, current} {
			if _, err := r.Open(nil, sealed, []byte("place")); !errors.Is(err, ErrDestroyed) {
				t.Errorf("Open of what was destroyed = %v", err)
			}
		}
		wantText(t, r, other, "other")
		wantText(t, r, fresh, "fresh")
	}
	wantNowhere(t, filepath.Dir(path), gone)
	if kept := secrets(t, path, "other"); len(kept) != 1 {
		t.Errorf("other has %d keys", len(kept))
	}
}

func TestKEK(t *testing.T) {
	t.Parallel()
	path := ringPath(t)
	r := mustOpen(t, path, kek(1))
	sealed := mustSeal(t, r, "acme", "text")
	secret := r.current["acme"].secret
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(base64.StdEncoding.EncodeToString(secret))) {
		t.Error("the key lies in the file as it is")
	}
	for _, wrong := range [][]byte{nil, kek(2)} {
		if _, err := Open(path, Options{KEK: wrong}); err == nil || !strings.Contains(err.Error(), "[store] keyring") || !strings.Contains(err.Error(), path) {
			t.Errorf("Open with the wrong key = %v", err)
		}
	}
	if _, err := Open(path, Options{KEK: kek(1)[:31]}); err == nil || !strings.Contains(err.Error(), "[store] keyring") {
		t.Errorf("Open with a short key = %v", err)
	}
	if err := r.Rewrap(kek(2)); err != nil {
		t.Fatal(err)
	}
	wantText(t, mustOpen(t, path, kek(2)), sealed, "text")
	if err := r.Rewrap(nil); err != nil {
		t.Fatal(err)
	}
	wantText(t, mustOpen(t, path, nil), sealed, "text")
	// A wrapping key that is configured later wraps what lies there.
	wantText(t, mustOpen(t, path, kek(3)), sealed, "text")
	if _, err := Open(path, Options{}); err == nil {
		t.Error("the keys still lie there as they are")
	}
	if err := r.Rewrap([]byte("short")); err == nil {
		t.Error("Rewrap with a short key succeeded")
	}
}

func TestParseKEK(t *testing.T) {
	t.Parallel()
	k := []byte("\xff\xfe9876543210abcdefghijklmnopqr++//")[:KEKSize]
	for _, text := range []string{
		hex.EncodeToString(k), " " + strings.ToUpper(hex.EncodeToString(k)) + "\n",
		base64.StdEncoding.EncodeToString(k), base64.RawURLEncoding.EncodeToString(k),
	} {
		if got, err := ParseKEK(text); err != nil || !bytes.Equal(got, k) {
			t.Errorf("ParseKEK(%q) = %x, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "short", hex.EncodeToString(k[1:]), string(k)} {
		if _, err := ParseKEK(text); err == nil || !strings.Contains(err.Error(), "[store] keyring") {
			t.Errorf("ParseKEK(%q) = %v", text, err)
		}
	}
}

// A first use by many makes one key.
func TestFirstUse(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, ringPath(t), nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := r.Sealer("acme"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(r.keys) != 1 {
		t.Errorf("%d keys were made", len(r.keys))
	}
	if _, err := r.Sealer("\xff"); err == nil {
		t.Error("a name that is not UTF-8 has a key")
	}
}

// BenchmarkSeal measures a row of 1 KiB.
func BenchmarkSeal(b *testing.B) {
	r, err := Open(filepath.Join(b.TempDir(), "k"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := r.Sealer("acme")
	if err != nil {
		b.Fatal(err)
	}
	row, place := make([]byte, 1<<10), make([]byte, 60)
	sealed := s.Seal(nil, row, place)
	out := make([]byte, 0, 2<<10)
	b.Run("seal", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		for b.Loop() {
			out = s.Seal(out[:0], row, place)
		}
	})
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		for b.Loop() {
			if _, err := r.Open(out[:0], sealed, place); err != nil {
				b.Fatal(err)
			}
		}
	})
}
