package datadir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/pathcheck"
	"skep/host/internal/peer/registry"
	"skep/host/internal/store/atomicfile"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
)

// What the names of the other parts of a backup end with: its keyring, the
// directory of its modules, the swarms that were registered, and the key that signs for the host.
const (
	KeyringSuffix    = ".keyring"
	ModulesSuffix    = ".modules"
	RegistrySuffix   = ".registry.json"
	SigningKeySuffix = ".letters.key"
)

// GatewayKeySuffix is what the name of the keys of a gateway ends with.
func GatewayKeySuffix(gateway string) string { return "." + gateway + ".key" }

// RegistryName is the file of the registered swarms in a data directory.
const RegistryName = "registry.json"

// Backup writes a copy of the database to a new file, also while a host uses it, and copies
// of the kept modules and of the registered swarms beside it. With withKeyring it also
// copies the keyring and the keys that sign for the host and for gateways. It returns how many modules there are.
func (d Data) Backup(ctx context.Context, file string, withKeyring bool) (modules int, err error) {
	defer func() { err = d.record("data.backup", file, err) }()
	names := []string{file, file + ModulesSuffix, file + KeyringSuffix, file + RegistrySuffix, file + SigningKeySuffix}
	for _, gateway := range SigningGateways() {
		names = append(names, file+GatewayKeySuffix(gateway))
	}
	if err := vacant(names...); err != nil {
		return 0, err
	}
	part := definition.ModuleDir(file + ModulesSuffix + "." + rand.Text() + atomicfile.PartSuffix)
	kept := d.modules()
	copied := false
	err = d.read(ctx, func(r *sqlite.Reader) error {
		// A module may be dropped after the copy of the database is made, and one
		// that the copy names may come while it is.
		before := copyModules(ctx, r, kept, part)
		if err := r.Backup(ctx, file); err != nil {
			return err
		}
		copied = true
		err := cmp.Or(copyModules(ctx, r, kept, part), before)
		if err != nil {
			err = fmt.Errorf("the database is copied to %s, but not all modules: %w", file, err)
		}
		return errors.Join(err, d.backUpRegistry(ctx, r, file+RegistrySuffix), d.backUpKeys(ctx, r, file, withKeyring))
	})
	if !copied {
		return 0, errors.Join(err, os.RemoveAll(string(part)))
	}
	modules, named := nameModules(string(part), file+ModulesSuffix)
	return modules, errors.Join(err, named)
}

// copyModules copies the modules of a data directory, and those that hosts have kept on the server.
func copyModules(ctx context.Context, r *sqlite.Reader, from, to definition.ModuleDir) error {
	m := r.ServerModules()
	if m == nil {
		return from.CopyTo(ctx, to)
	}
	damaged, err := definition.CopyRows(ctx, m, to) // first: a damaged file is not missed then
	err = errors.Join(err, from.CopyTo(ctx, to))
	for _, digest := range slices.Sorted(maps.Keys(damaged)) {
		if !to.Has(digest) {
			err = errors.Join(err, damaged[digest])
		}
	}
	return err
}

// vacant refuses names that are taken.
func vacant(names ...string) error {
	for _, name := range names {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s is there already: choose a new name", name)
		}
	}
	return nil
}

func (d Data) backUpKeys(ctx context.Context, r *sqlite.Reader, file string, wanted bool) error {
	if !wanted {
		return nil
	}
	if err := d.backUpSigningKey(ctx, r, file+SigningKeySuffix); err != nil {
		return err
	}
	if err := d.backUpGatewayKeys(file); err != nil {
		return err
	}
	// Keys are made before anything is sealed with them: a keyring that is read
	// later has all that the copy needs.
	content, err := r.KeyringText()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no keyring in %s: nothing is sealed yet; the backup without one is whole", d.Place())
	}
	if err != nil {
		return err
	}
	return atomicfile.CreateBytes(file+KeyringSuffix, 0o600, content)
}

// registryText is what the file of the registered swarms is in errors. They name tokens,
// and hold none.
const registryText = "the registered swarms"

// copyFile copies a small file, unless there is none.
func copyFile(from, to, what string) error {
	in, err := pathcheck.OpenRegular(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.Create(to, 0o600, func(w io.Writer) error {
			_, err := io.Copy(w, in)
			return err
		})
		err = errors.Join(err, in.Close())
	}
	if err != nil {
		err = fmt.Errorf("copy %s: %w", what, err)
	}
	return err
}

// backUpRegistry copies the registered swarms, without their tokens, if there are any.
func (d Data) backUpRegistry(ctx context.Context, r *sqlite.Reader, to string) error {
	s := r.Secrets()
	if s == nil {
		return copyFile(d.file(RegistryName), to, registryText)
	}
	list, err := s.Swarms(ctx)
	if len(list) == 0 || err != nil {
		return err
	}
	text, damaged := registry.FileOf(list)
	return errors.Join(damaged, atomicfile.CreateBytes(to, 0o600, text))
}

// restoreRegistry copies them, unless the directory has its own.
func (d Data) restoreRegistry(from string) error {
	to := filepath.Join(d.Dir, RegistryName)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	return copyFile(from, to, registryText)
}

// nameModules gives the modules of a backup their name. It returns how many
// there are.
func nameModules(part, name string) (n int, err error) {
	list, err := os.ReadDir(part)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case len(list) == 0: // none of them was whole
		return 0, os.Remove(part)
	}
	return len(list), atomicfile.Rename(part, name)
}

// errRestoreToServer refuses a restore that no host of the configuration would see.
var errRestoreToServer = errors.New("a backup is restored into a data directory, and [store] of swarm.toml names a server: restore it without driver, dsn, durability and plaintext in [store], then move it with skep migrate --from DIR --to env::NAME")

// Restore makes a data directory of a backup. The keyring is the one that is
// there, or the one beside the backup, whose modules, registered swarms and keys that sign
// are kept as well.
func (d Data) Restore(ctx context.Context, file string) (err error) {
	if d.Store.Driver == config.DriverPostgres {
		return errRestoreToServer
	}
	defer func() { err = d.record("data.restore", file, err) }()
	var missing error
	err = sqlite.Restore(ctx, file, d.Dir, func() error {
		if err := d.restoreKeys(file + KeyringSuffix); err != nil {
			return fmt.Errorf("restore the keyring: %w", err)
		}
		missing = d.restoreBeside(ctx, file)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if own := d.own(ctx, func(*sqlite.Store) error { return nil }); own != nil {
		return errors.Join(fmt.Errorf("the database is restored, and need not be again, but no host can use it yet: %w", own), missing)
	}
	return missing
}

// restoreBeside copies the modules and the small files of a backup. Without its
// module a turn begins anew: that is no reason to keep from the host what is there.
func (d Data) restoreBeside(ctx context.Context, file string) error {
	err := definition.ModuleDir(file+ModulesSuffix).CopyTo(ctx, definition.DataModules(d.Dir))
	if err != nil {
		err = fmt.Errorf("the database is restored, but not all modules: %w", err)
	}
	if known := d.restoreRegistry(file + RegistrySuffix); known != nil {
		err = errors.Join(err, fmt.Errorf("the database is restored, but not the swarms that were registered: %w", known))
	}
	if key := d.restoreSigningKey(file + SigningKeySuffix); key != nil {
		err = errors.Join(err, fmt.Errorf("the database is restored, but not the key that signs for the host: %w", key))
	}
	for _, gateway := range SigningGateways() {
		if keys := d.restoreGatewayKeys(gateway, file+GatewayKeySuffix(gateway)); keys != nil {
			err = errors.Join(err, fmt.Errorf("the database is restored, but not the keys of the gateway %s: %w", gateway, keys))
		}
	}
	return err
}

// restoreKeys copies a keyring, unless there is none, or one already.
func (d Data) restoreKeys(from string) error {
	to := filepath.Join(d.Dir, keyringName)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	content, err := keyring.Read(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.CreateBytes(to, 0o600, content)
}
