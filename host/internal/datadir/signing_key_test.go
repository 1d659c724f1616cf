package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/peer/registry"
	"skep/host/internal/peer/signature"
	"skep/host/internal/store/sqlite"
)

// wantSigningKey wants a place to have a key.
func wantSigningKey(t *testing.T, d Data, want string) {
	t.Helper()
	if got, err := d.SigningKey(t.Context()); got != want || err != nil {
		t.Errorf("%s: %q, %v, want %q", d.Place(), got, err, want)
	}
}

// swarmsFile is a file of registered swarms.
const swarmsFile = `{"schema":1,"endpoints":{"yard":{"swarm_name":"yard","base_url":"https://yard.example","auth_token_ref":"${SWARM_AUTH_TOKEN_YARD}","registered":"2026-01-01T00:00:00Z"}}}`

// TestRegistryMoves: registered swarms go to a server and back with a move, and into a backup of a server, without the
// tokens that it has of them. One that is damaged there stops the move and leaves the rest of a backup.
func TestRegistryMoves(t *testing.T) {
	t.Parallel()
	d, at := newData(t), Data{Dir: t.TempDir(), Store: emptyServer(t)}
	mustDo(t, os.WriteFile(filepath.Join(d.Dir, RegistryName), []byte(swarmsFile), 0o600))
	place := Place{DSN: at.Store.DSN}
	_, err := Migrate(t.Context(), Place{Dir: d.Dir}, place, at.Store.Keyring, nil)
	mustDo(t, err)
	s, err := OpenStore(t.Context(), at.Dir, at.Store, sqlite.Options{})
	mustDo(t, err)
	list, err := s.Secrets().Swarms(t.Context())
	mustDo(t, err)
	if len(list) != 1 || list[0].Name != "yard" {
		t.Fatalf("moved are %+v", list)
	}
	const withToken = `{"swarm_name":"yard","base_url":"https://yard.example/2","auth_token_ref":"${SWARM_AUTH_TOKEN_YARD}","registered":"2026-01-01T00:00:00Z","auth_token":"a-token-of-the-yard"}`
	_, ok, err := s.Secrets().SwapSwarm(t.Context(), list[0], []byte(withToken))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	file := filepath.Join(t.TempDir(), "b")
	_, err = at.Backup(t.Context(), file, false)
	mustDo(t, err)
	wantSwarms(t, file+RegistrySuffix)
	broken, _, err := s.Secrets().SwapSwarm(t.Context(), registry.Record{Name: "broken"}, []byte("{"))
	mustDo(t, err)
	mustDo(t, s.Close())
	file = filepath.Join(t.TempDir(), "b")
	if _, err = at.Backup(t.Context(), file, true); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Backup() = %v", err)
	}
	wantSwarms(t, file+RegistrySuffix)
	back := Data{Dir: filepath.Join(t.TempDir(), "back")}
	if _, err = Migrate(t.Context(), place, Place{Dir: back.Dir}, at.Store.Keyring, nil); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Migrate() = %v", err)
	}
	s, err = OpenStore(t.Context(), at.Dir, at.Store, sqlite.Options{}) // it was not moved
	mustDo(t, err)
	_, ok, err = s.Secrets().SwapSwarm(t.Context(), broken, nil)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	mustDo(t, s.Close())
	_, err = Migrate(t.Context(), place, Place{Dir: back.Dir}, at.Store.Keyring, nil)
	mustDo(t, err)
	wantSwarms(t, filepath.Join(back.Dir, RegistryName))
}

// wantSwarms wants a file to have what TestRegistryMoves has registered last, and no token.
func wantSwarms(t *testing.T, file string) {
	t.Helper()
	mustDo(t, registry.Check(file))
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "https://yard.example/2") || strings.Contains(string(text), "a-token-of-the-yard") {
		t.Errorf("%s: %s, %v", file, text, err)
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
	old := filepath.Join(at.Dir, signature.KeyFileName)
	mustDo(t, os.WriteFile(old, signature.NewKey().PEM(), 0o600))
	key, err = at.RotateSigningKey(t.Context()) // beside a host
	mustDo(t, err)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file with the old key: %v", err)
	}
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
