package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/store/durabletest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emptyModule is a module, and its digest.
const (
	emptyModule       = "\x00asm\x01\x00\x00\x00"
	emptyModuleDigest = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476"
)

// newData makes a directory with everything that a backup has: a database, a keyring, a
// module, registered swarms, and keys of agent cards.
func newData(t *testing.T) Data {
	t.Helper()
	d := Data{Dir: filepath.Join(t.TempDir(), "data")}
	s, err := OpenStore(t.Context(), d.Dir, d.Store, sqlite.Options{})
	mustDo(t, err)
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: "user:alice"}, Task: "t"}
	mustDo(t, s.Commit(t.Context(), swarm.Mutation{Task: swarm.Task{Key: key, State: swarm.StateRunning}}))
	mustDo(t, s.Close())
	mustDo(t, os.Mkdir(filepath.Join(d.Dir, "modules"), 0o700))
	mustDo(t, os.WriteFile(filepath.Join(d.Dir, "modules", emptyModuleDigest+".wasm"), []byte(emptyModule), 0o400))
	mustDo(t, os.WriteFile(filepath.Join(d.Dir, RegistryName), []byte(swarmsFile), 0o600))
	_, err = d.SigningKey(t.Context())
	mustDo(t, err)
	for _, gateway := range SigningGateways() {
		_, err = d.RotateGatewayKey(gateway)
		mustDo(t, err)
	}
	return d
}

// When a backup or a restore has returned, a power cut takes none of it away. One during a
// restore leaves no database without what belongs to it.
func TestBackupLasts(t *testing.T) {
	t.Parallel()
	d, file := newData(t), filepath.Join(t.TempDir(), "b")
	durabletest.Trace(t, func() error {
		_, err := d.Backup(t.Context(), file, true)
		return err
	}).Want(t, file, file+KeyringSuffix, file+SigningKeySuffix, file+GatewayKeySuffix("a2a"), file+GatewayKeySuffix("uamp"), file+ModulesSuffix, file+RegistrySuffix)
	to := Data{Dir: filepath.Join(t.TempDir(), "new", "data")}
	restored := durabletest.Trace(t, func() error { return to.Restore(t.Context(), file) })
	restored.Want(t, filepath.Join(to.Dir, storeName), filepath.Join(to.Dir, keyringName), filepath.Join(to.Dir, RegistryName), filepath.Join(to.Dir, "modules"), to.signingKeyFile(), to.gatewayKeyFile("a2a"), to.gatewayKeyFile("uamp"))
	restored.WantLast(t, storeName, keyringName, RegistryName, "modules", emptyModuleDigest+".wasm")
}

// A backup replaces nothing: one of its names that is taken refuses it, before any part of
// it is written.
func TestBackupReplacesNothing(t *testing.T) {
	t.Parallel()
	d := newData(t)
	for _, suffix := range []string{"", KeyringSuffix, ModulesSuffix, RegistrySuffix, SigningKeySuffix} {
		dir := t.TempDir()
		taken := filepath.Join(dir, "b"+suffix)
		mustDo(t, os.WriteFile(taken, []byte("mine"), 0o600))
		_, err := d.Backup(t.Context(), filepath.Join(dir, "b"), true)
		if err == nil || !strings.Contains(err.Error(), taken+" is there already") {
			t.Errorf("Backup() beside %s = %v", filepath.Base(taken), err)
		}
		left, err := os.ReadDir(dir)
		if raw, unread := os.ReadFile(taken); err != nil || unread != nil || len(left) != 1 || string(raw) != "mine" {
			t.Errorf("beside %s is left %v (%v); it holds %q (%v)", filepath.Base(taken), left, err, raw, unread)
		}
	}
}

// A restore into a directory with a keyring keeps that one, whatever lies beside the backup.
func TestRestoreKeepsTheKeyring(t *testing.T) {
	t.Parallel()
	d, file := newData(t), filepath.Join(t.TempDir(), "b")
	_, err := d.Backup(t.Context(), file, true)
	mustDo(t, err)
	own, err := os.ReadFile(file + KeyringSuffix)
	mustDo(t, err)
	to := Data{Dir: filepath.Join(t.TempDir(), "data")}
	mustDo(t, os.Mkdir(to.Dir, 0o700))
	mustDo(t, os.WriteFile(filepath.Join(to.Dir, keyringName), own, 0o600))
	mustDo(t, os.WriteFile(file+KeyringSuffix, []byte("of another backup"), 0o600))
	mustDo(t, to.Restore(t.Context(), file))
	if left, err := os.ReadFile(filepath.Join(to.Dir, keyringName)); err != nil || string(left) != string(own) {
		t.Errorf("the keyring is another one: %v", err)
	}
}

// A restore that fails before the database has its name can be repeated.
func TestRestoreAgain(t *testing.T) {
	t.Parallel()
	d, file := newData(t), filepath.Join(t.TempDir(), "b")
	_, err := d.Backup(t.Context(), file, true)
	mustDo(t, err)
	mustDo(t, os.Rename(file+KeyringSuffix, file+".away"))
	mustDo(t, os.Mkdir(file+KeyringSuffix, 0o700))
	to := Data{Dir: filepath.Join(t.TempDir(), "data")}
	if err := to.Restore(t.Context(), file); err == nil || !strings.Contains(err.Error(), "restore the keyring") {
		t.Errorf("Restore() with a directory for a keyring = %v", err)
	}
	mustDo(t, os.Remove(file+KeyringSuffix))
	mustDo(t, os.Rename(file+".away", file+KeyringSuffix))
	mustDo(t, to.Restore(t.Context(), file))
}

// The keys of gateways are restored as they were, over none of the new directory; a backup
// without secrets has none.
func TestBackupOfGatewayKeys(t *testing.T) {
	t.Parallel()
	d, dir := newData(t), t.TempDir()
	for _, name := range []string{"all", "plain"} {
		_, err := d.Backup(t.Context(), filepath.Join(dir, name), name == "all")
		mustDo(t, err)
	}
	to, own := Data{Dir: filepath.Join(t.TempDir(), "data")}, Data{Dir: filepath.Join(t.TempDir(), "data")}
	mine := map[string][]GatewayKey{}
	for _, gateway := range SigningGateways() {
		keys, err := own.RotateGatewayKey(gateway)
		mustDo(t, err)
		mine[gateway] = keys
	}
	mustDo(t, to.Restore(t.Context(), filepath.Join(dir, "all")))
	mustDo(t, own.Restore(t.Context(), filepath.Join(dir, "all")))
	for _, gateway := range SigningGateways() {
		want, err := d.GatewayKeys(gateway)
		mustDo(t, err)
		if _, err := os.Stat(filepath.Join(dir, "plain"+GatewayKeySuffix(gateway))); err == nil {
			t.Errorf("a backup without secrets has the keys of %s", gateway)
		}
		if got, err := to.GatewayKeys(gateway); err != nil || len(got) == 0 || !cmp.Equal(got, want) {
			t.Errorf("restored %+v, %v; want %+v", got, err, want)
		}
		if got, err := own.GatewayKeys(gateway); err != nil || !cmp.Equal(got, mine[gateway]) {
			t.Errorf("a directory with keys of its own has %+v, %v", got, err)
		}
	}
}
