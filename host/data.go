package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"skep/host/internal/config"
	"skep/host/internal/keyring"
	"skep/host/internal/store/sqlite"
)

// Data is a data directory that commands work on without a host. Those that
// change it need it for themselves: while a host uses it they fail with an error
// that is [ErrInUse].
type Data struct {
	// Dir is the directory.
	Dir string
	// Key is [store] keyring of the configuration.
	Key    config.Secret
	Logger *slog.Logger
}

// ErrInUse says that a host is using the data directory.
var ErrInUse = sqlite.ErrInUse

// KeyError says that [store] keyring is missing, or not the key that is needed.
type KeyError struct{ err error }

// Error says what is wrong with the key.
func (e *KeyError) Error() string { return e.err.Error() }

// Tenant is a tenant of a data directory and what it keeps there.
type Tenant struct {
	Name  string
	Tasks int64
	Bytes int64
}

// KeyringSuffix is what the name of a backup's keyring ends with.
const KeyringSuffix = ".keyring"

// keyringName is the name of the keyring in a data directory.
const keyringName = "keyring"

// Backup writes a copy of the database to a new file, also while a host uses it,
// and with withKeyring one of the keyring beside it.
func (d Data) Backup(ctx context.Context, file string, withKeyring bool) error {
	return d.read(ctx, func(r *sqlite.Reader) error {
		if err := r.Backup(ctx, file); err != nil || !withKeyring {
			return err
		}
		// Keys are made before anything is sealed with them: a keyring that is
		// read later has all that the copy needs.
		err := copyNew(filepath.Join(d.Dir, keyringName), file+KeyringSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no keyring in %s: nothing is sealed yet; the backup without one is whole", d.Dir)
		}
		return err
	})
}

// Restore makes a data directory of a backup. The keyring is the one that is
// there, or the one beside the backup.
func (d Data) Restore(ctx context.Context, file string) error {
	if err := sqlite.Restore(ctx, file, d.Dir); err != nil {
		return err
	}
	err := copyNew(file+KeyringSuffix, filepath.Join(d.Dir, keyringName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("restore the keyring: %w", err)
	}
	if err := d.own(ctx, func(*sqlite.Store) error { return nil }); err != nil {
		return fmt.Errorf("the database is restored, but no host can use it yet: %w", err)
	}
	return nil
}

// Tenants lists who keeps anything, also while a host uses the directory.
func (d Data) Tenants(ctx context.Context) (list []Tenant, err error) {
	err = d.read(ctx, func(r *sqlite.Reader) error {
		found, err := r.Tenants(ctx)
		for _, h := range found {
			list = append(list, Tenant{h.Tenant, h.Tasks, h.Bytes})
		}
		return err
	})
	return list, err
}

// Export writes all that is kept of a tenant as JSON lines, also while a host
// uses the directory. A tenant that keeps nothing is [ErrNotFound].
func (d Data) Export(ctx context.Context, tenant string, w io.Writer) error {
	return d.read(ctx, func(r *sqlite.Reader) error {
		if err := d.has(ctx, r, tenant); err != nil {
			return err
		}
		return r.Export(ctx, tenant, w)
	})
}

// Erase removes all that is kept of a tenant and destroys its keys. A tenant
// that keeps nothing is [ErrNotFound].
func (d Data) Erase(ctx context.Context, tenant string) error {
	return d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Erase(ctx, tenant)
	})
}

// Rotate gives a tenant a new key and seals all that it keeps with it. A tenant
// that keeps nothing is [ErrNotFound].
func (d Data) Rotate(ctx context.Context, tenant string) error {
	return d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Rotate(ctx, tenant)
	})
}

// lister knows who keeps anything.
type lister interface {
	Tenants(ctx context.Context) ([]sqlite.Holding, error)
}

func (d Data) has(ctx context.Context, l lister, tenant string) error {
	list, err := l.Tenants(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(h sqlite.Holding) bool { return h.Tenant == tenant }) {
		return fmt.Errorf("%w: tenant %q keeps nothing in %s", ErrNotFound, tenant, d.Dir)
	}
	return nil
}

// read opens the directory to read.
func (d Data) read(ctx context.Context, do func(*sqlite.Reader) error) error {
	r, err := openReader(ctx, d.Dir, d.Key)
	if err != nil {
		return asKeyError(err)
	}
	return errors.Join(do(r), r.Close())
}

// own takes the directory into use.
func (d Data) own(ctx context.Context, do func(*sqlite.Store) error) error {
	if _, err := os.Stat(filepath.Join(d.Dir, storeName)); errors.Is(err, fs.ErrNotExist) {
		return noStore(d.Dir)
	}
	opt, err := storeOptions(d.Key, d.Logger)
	if err != nil {
		return &KeyError{err}
	}
	s, err := sqlite.Open(ctx, d.Dir, opt)
	if err != nil {
		return asKeyError(err)
	}
	return errors.Join(do(s), s.Close())
}

func asKeyError(err error) error {
	if errors.Is(err, keyring.ErrWrapped) || errors.Is(err, keyring.ErrWrongKEK) {
		return &KeyError{err}
	}
	return err
}

// copyNew copies a file to a name that is not taken, for its owner's eyes only.
func copyNew(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "copy", Path: to, Err: fs.ErrExist}
	}
	return install(to, content, 0o600)
}
