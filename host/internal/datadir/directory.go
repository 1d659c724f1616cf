package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
	"skep/host/internal/store/cluster"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/swarm"
)

// Data is a data directory that commands work on without a host. Those that
// change it need it for themselves: while a host uses it they fail with an error
// that is [ErrInUse].
type Data struct {
	// Dir is the directory, empty for a command on a server without the directory of a host.
	Dir string
	// Store is [store] of the configuration. With the driver postgres what tenants keep is on
	// its server.
	Store  config.Store
	Logger *slog.Logger
}

// ErrInUse: a host is using the data directory.
var ErrInUse = sqlite.ErrInUse

// KeyError: [store] keyring is missing, or not the key that is needed.
type KeyError struct{ err error }

// Error returns what is wrong with the key.
func (e *KeyError) Error() string { return e.err.Error() }

// Tenant is a tenant of a data directory and what it keeps there.
type Tenant struct {
	Name  string
	Tasks int64
	Bytes int64
	// Quota has the quotas that hold for the whole store, with what is used of them.
	Quota []swarm.QuotaUse
}

// keyringName is the name of the keyring in a data directory.
const keyringName = "keyring"

// Tenants lists who keeps anything, and the tenants of the file, by name, also while a host uses the directory.
func (d Data) Tenants(ctx context.Context, cfg *config.Config) (list []Tenant, err error) {
	limits := definition.Tenants(cfg)
	err = d.read(ctx, func(r *sqlite.Reader) error {
		found, err := r.Tenants(ctx)
		kept := map[string]swarm.Footprint{}
		for name := range limits {
			kept[name] = swarm.Footprint{}
		}
		for _, h := range found {
			kept[h.Tenant] = h.Footprint
		}
		for _, name := range slices.Sorted(maps.Keys(kept)) {
			has := kept[name]
			list = append(list, Tenant{name, has.Tasks, has.Bytes, limits[name].Quota.StoredUse(has, time.Now())})
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
// that keeps nothing is [ErrNotFound]. While a host uses the directory nothing is
// tried, and so nothing is recorded: the host records what it is asked to do.
func (d Data) Erase(ctx context.Context, tenant string) error {
	err := d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Erase(ctx, tenant)
	})
	if errors.Is(err, ErrInUse) {
		return err
	}
	return d.record("tenant.erase", tenant, err)
}

// Rotate gives a tenant a new key and seals all that it keeps with it. A tenant
// that keeps nothing is [ErrNotFound].
func (d Data) Rotate(ctx context.Context, tenant string) error {
	err := d.own(ctx, func(s *sqlite.Store) error {
		if err := d.has(ctx, s, tenant); err != nil {
			return err
		}
		return s.Rotate(ctx, tenant)
	})
	if errors.Is(err, ErrInUse) && d.Store.Driver == config.DriverPostgres {
		err = d.rotateShared(ctx, tenant, err)
	}
	return d.record("tenant.rotate", tenant, err)
}

// Kinds of what hosts that share a server do together for a tenant.
const (
	ChoreErase  = "erase"
	ChoreRotate = "rotate"
	// ChoreReseal is a rotation that was left undone, whose key is there.
	ChoreReseal = "reseal"
)

// rotateShared is Rotate by the hosts that share the server. Without one it returns inUse.
func (d Data) rotateShared(ctx context.Context, tenant string, inUse error) error {
	if err := d.read(ctx, func(r *sqlite.Reader) error { return d.has(ctx, r, tenant) }); err != nil {
		return err
	}
	err := cluster.RequestChore(ctx, d.Store.DSN.Reveal(), cluster.Chore{Kind: ChoreRotate, Tenant: tenant})
	if errors.Is(err, cluster.ErrNoHost) {
		return inUse
	}
	return err
}

// keeper knows who keeps anything.
type keeper interface {
	HasData(ctx context.Context, tenant string) (bool, error)
}

func (d Data) has(ctx context.Context, k keeper, tenant string) error {
	kept, err := k.HasData(ctx, tenant)
	if err != nil {
		return err
	}
	if !kept {
		return fmt.Errorf("%w: tenant %q keeps nothing in %s", ErrNotFound, tenant, d.Place())
	}
	return nil
}

// file returns the path of a file of the directory; name has slashes. Without a directory the path is empty, at which
// there is no file.
func (d Data) file(name string) string {
	if d.Dir == "" {
		return ""
	}
	return filepath.Join(d.Dir, filepath.FromSlash(name))
}

// modules returns the module copies of the directory, none without one.
func (d Data) modules() definition.ModuleDir {
	if d.Dir == "" {
		return ""
	}
	return definition.DataModules(d.Dir)
}

// Place names what the store is in: the directory, or a server.
func (d Data) Place() string { return placeOf(d.Dir, d.Store) }

// read opens the directory to read.
func (d Data) read(ctx context.Context, do func(*sqlite.Reader) error) error {
	r, err := OpenReader(ctx, d.Dir, d.Store)
	if err != nil {
		return asKeyError(err)
	}
	return errors.Join(do(r), r.Close())
}

// Exists is [ErrNotFound] where no host has kept anything yet.
func (d Data) Exists() error {
	if d.Store.Driver == config.DriverPostgres {
		return nil
	}
	if _, err := os.Stat(filepath.Join(d.Dir, storeName)); errors.Is(err, fs.ErrNotExist) {
		return noStore(d.Dir)
	}
	return nil
}

// hasStore is [Data.Exists] that asks a server, too: a command makes no store there.
func (d Data) hasStore(ctx context.Context) error {
	if d.Store.Driver != config.DriverPostgres {
		return d.Exists()
	}
	if err := sqlite.CheckServer(ctx, server(d.Store)); errors.Is(err, fs.ErrNotExist) {
		return noStore(d.Place())
	}
	return nil // what else is wrong is found when the store is opened
}

// own takes the directory into use.
func (d Data) own(ctx context.Context, do func(*sqlite.Store) error) error {
	if err := d.hasStore(ctx); err != nil {
		return err
	}
	s, err := OpenStore(ctx, d.Dir, d.Store, sqlite.Options{Logger: d.Logger})
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
