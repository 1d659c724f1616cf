package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/turn/wasm/binary"
)

// emptyServer is [store] with a schema without a store.
func emptyServer(t *testing.T) config.Store {
	t.Helper()
	return config.Store{
		Driver: config.DriverPostgres, DSN: config.Secret(pgtest.Schema(t)), Durability: config.DurabilityLocal, Keyring: config.Secret(strings.Repeat("5e", 32)),
	}
}

// TestNoStoreOnServer: a command on a schema without a store says so, and makes none.
func TestNoStoreOnServer(t *testing.T) {
	t.Parallel()
	d := Data{Dir: t.TempDir(), Store: emptyServer(t)}
	_, _, rewrapped := d.Rewrap(t.Context(), config.Secret(strings.Repeat("a1", 32)))
	for name, err := range map[string]error{"rewrap": rewrapped, "erase": d.Erase(t.Context(), "acme"), "rotate": d.Rotate(t.Context(), "acme")} {
		if !errors.Is(err, ErrNoStore) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerDirectory: the first start of a host on a server makes its data directory, for what
// is its own.
func TestServerDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	s, err := OpenStore(t.Context(), dir, emptyServer(t), sqlite.Options{})
	mustDo(t, err)
	mustDo(t, s.Close())
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
}

// TestSharedDirectory: hosts that share a server have a data directory each.
func TestSharedDirectory(t *testing.T) {
	t.Parallel()
	at, dir := emptyServer(t), t.TempDir()
	s, err := OpenShared(t.Context(), dir, at, sqlite.Options{})
	mustDo(t, err)
	if _, err := OpenShared(t.Context(), dir, at, sqlite.Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("OpenShared() of a directory that is in use = %v", err)
	}
	other, err := OpenShared(t.Context(), t.TempDir(), at, sqlite.Options{})
	mustDo(t, err)
	mustDo(t, other.Close())
	mustDo(t, s.Close())
	s, err = OpenShared(t.Context(), dir, at, sqlite.Options{})
	mustDo(t, err)
	mustDo(t, s.Close())
}

// TestServerBackupModules: a backup of a server has the modules that hosts have kept there, from whichever machine it is
// made.
func TestServerBackupModules(t *testing.T) {
	t.Parallel()
	at, dir := emptyServer(t), t.TempDir()
	s, err := OpenShared(t.Context(), t.TempDir(), at, sqlite.Options{})
	mustDo(t, err)
	sum := sha256.Sum256([]byte("a module"))
	digest := hex.EncodeToString(sum[:])
	mustDo(t, s.ServerModules().AddModule(t.Context(), digest, []byte("a module")))
	mustDo(t, s.Close())
	file := filepath.Join(dir, "copy.db")
	n, err := Data{Dir: dir, Store: at}.Backup(t.Context(), file, false)
	mustDo(t, err)
	data, err := definition.ModuleDir(file+ModulesSuffix).Read(digest, binary.DefaultCaps())
	mustDo(t, err)
	if n != 1 || string(data) != "a module" {
		t.Errorf("%d modules are copied, %q", n, data)
	}
}

// TestBackupSoundCopy: a backup has a module of which the file or the row is sound, whichever of them is damaged.
func TestBackupSoundCopy(t *testing.T) {
	t.Parallel()
	at, dir := emptyServer(t), t.TempDir()
	s, err := OpenShared(t.Context(), t.TempDir(), at, sqlite.Options{})
	mustDo(t, err)
	kept := filepath.Join(dir, "modules")
	mustDo(t, os.Mkdir(kept, 0o700))
	for name, file := range map[string]string{"a module": "damaged!", "another": "another"} {
		sum := sha256.Sum256([]byte(name))
		digest := hex.EncodeToString(sum[:])
		mustDo(t, s.ServerModules().AddModule(t.Context(), digest, []byte(name)))
		mustDo(t, os.WriteFile(filepath.Join(kept, digest+".wasm"), []byte(file), 0o400))
	}
	mustDo(t, s.Close())
	const damage = "WITH changed AS (UPDATE modules SET body = '\\x7f' WHERE digest = sha256('another') RETURNING 1) SELECT count(*) FROM changed"
	if n := pgtest.Number(t, at.DSN.Reveal(), damage)(); n != 1 {
		t.Fatalf("%d rows are damaged", n)
	}
	n, err := Data{Dir: dir, Store: at}.Backup(t.Context(), filepath.Join(dir, "copy.db"), false)
	if n != 2 || err != nil {
		t.Errorf("%d modules are copied, %v", n, err)
	}
}

// TestModulesMove: modules go to a server and back with a move. One that is damaged there is named, and the rest is done.
func TestModulesMove(t *testing.T) {
	t.Parallel()
	d, at := newData(t), emptyServer(t)
	place := Place{DSN: at.DSN}
	kept := filepath.Join(d.Dir, "modules")
	mustDo(t, os.MkdirAll(kept, 0o700))
	sum := sha256.Sum256([]byte("a module"))
	digest := hex.EncodeToString(sum[:])
	mustDo(t, os.WriteFile(filepath.Join(kept, digest+".wasm"), []byte("a module"), 0o400))
	_, err := Migrate(t.Context(), Place{Dir: d.Dir}, place, at.Keyring, nil)
	mustDo(t, err)
	const damaged = "WITH added AS (INSERT INTO modules VALUES (sha256('another'), 0, 7, '\\x7f') RETURNING 1) SELECT count(*) FROM added"
	if n := pgtest.Number(t, at.DSN.Reveal(), damaged)(); n != 1 {
		t.Fatalf("%d rows are added", n)
	}
	back := filepath.Join(t.TempDir(), "back")
	sum = sha256.Sum256([]byte("another"))
	_, err = Migrate(t.Context(), place, Place{Dir: back}, at.Keyring, nil)
	if err == nil || !strings.Contains(err.Error(), "moved") || !strings.Contains(err.Error(), hex.EncodeToString(sum[:])) {
		t.Errorf("Migrate() = %v", err)
	}
	if data, err := definition.DataModules(back).Read(digest, binary.DefaultCaps()); string(data) != "a module" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	s, err := OpenStore(t.Context(), back, config.Store{Keyring: at.Keyring}, sqlite.Options{})
	mustDo(t, err)
	mustDo(t, s.Close())
}
