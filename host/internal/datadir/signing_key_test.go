package datadir

import (
	"errors"
	"path/filepath"
	"testing"

	"skep/host/internal/store/sqlite"
)

// wantSigningKey wants a place to have a key.
func wantSigningKey(t *testing.T, d Data, want string) {
	t.Helper()
	if got, err := d.SigningKey(t.Context()); got != want || err != nil {
		t.Errorf("%s: %q, %v, want %q", d.Place(), got, err, want)
	}
}

// TestSigningKeyMoves: the key that signs goes along with a backup with its keyring, to a server and back, also after it was
// replaced there.
func TestSigningKeyMoves(t *testing.T) {
	t.Parallel()
	d := newData(t)
	first, err := d.SigningKey(t.Context())
	mustDo(t, err)
	key, err := d.RotateSigningKey(t.Context())
	mustDo(t, err)
	if key == first {
		t.Error("the key is the same")
	}
	file := filepath.Join(t.TempDir(), "b")
	_, err = d.Backup(t.Context(), file, true)
	mustDo(t, err)
	copied := Data{Dir: filepath.Join(t.TempDir(), "copied")}
	mustDo(t, copied.Restore(t.Context(), file))
	wantSigningKey(t, copied, key)

	at := Data{Dir: t.TempDir(), Store: emptyServer(t)}
	if _, err := at.SigningKey(t.Context()); !errors.Is(err, ErrNoStore) {
		t.Errorf("a key on a server without a store: %v", err)
	}
	place := Place{DSN: at.Store.DSN}
	_, err = Migrate(t.Context(), Place{Dir: d.Dir}, place, at.Store.Keyring, nil)
	mustDo(t, err)
	wantSigningKey(t, at, key)
	s, err := OpenStore(t.Context(), at.Dir, at.Store, sqlite.Options{})
	mustDo(t, err)
	key, err = at.RotateSigningKey(t.Context()) // beside a host
	mustDo(t, err)
	wantSigningKey(t, at, key)
	mustDo(t, s.Close())

	file = filepath.Join(t.TempDir(), "b")
	_, err = at.Backup(t.Context(), file, true)
	mustDo(t, err)
	copied = Data{Dir: filepath.Join(t.TempDir(), "copied"), Store: at.Store}
	copied.Store.Driver, copied.Store.DSN = "", ""
	mustDo(t, copied.Restore(t.Context(), file))
	wantSigningKey(t, copied, key)
	back := Data{Dir: filepath.Join(t.TempDir(), "back")}
	_, err = Migrate(t.Context(), place, Place{Dir: back.Dir}, at.Store.Keyring, nil)
	mustDo(t, err)
	wantSigningKey(t, back, key)
}
