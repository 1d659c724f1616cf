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
