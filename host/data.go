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

// keyringName is the name of the keyring in a data directory.
const keyringName = "keyring"

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
	return d.record("tenant.export", tenant, d.read(ctx, func(r *sqlite.Reader) error {
		if err := d.has(ctx, r, tenant); err != nil {
			return err
		}
		return r.Export(ctx, tenant, w)
	}))
}

// Erase removes all that is kept of a tenant and destroys its keys. A tenant
// that keeps nothing is [ErrNotFound].
func (d Data) Erase(ctx context.Context, tenant string) error {
	return d.record("tenant.erase", tenant, d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Erase(ctx, tenant)
	}))
}

// Rotate gives a tenant a new key and seals all that it keeps with it. A tenant
// that keeps nothing is [ErrNotFound].
func (d Data) Rotate(ctx context.Context, tenant string) error {
	return d.record("tenant.rotate", tenant, d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Rotate(ctx, tenant)
	}))
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
