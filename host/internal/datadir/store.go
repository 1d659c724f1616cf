package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/postgres"
	"skep/host/internal/store/sqlite"
)

// OpenStore takes the store of a data directory or of a server into use, and makes the
// directory, which a host on a server has as well. A command on a server may have none: dir is
// empty then. The keyring of opt does not count. The caller closes the store.
func OpenStore(ctx context.Context, dir string, s config.Store, opt sqlite.Options) (*sqlite.Store, error) {
	var err error
	if opt.Keyring, err = ringOptions(s.Keyring); err != nil {
		return nil, &KeyError{err}
	}
	if s.Driver == config.DriverPostgres {
		if dir != "" {
			if err := sqlite.PrepareDir(dir); err != nil {
				return nil, err
			}
		}
		return sqlite.OpenServer(ctx, server(s), opt)
	}
	return sqlite.Open(ctx, dir, opt)
}

// OpenShared takes the store of a server into use, beside the other hosts of a cluster. The host
// has a data directory of its own, which no other one uses meanwhile.
func OpenShared(ctx context.Context, dir string, s config.Store, opt sqlite.Options) (*sqlite.Store, error) {
	err := sqlite.PrepareDir(dir)
	if err != nil {
		return nil, err
	}
	if opt.Keyring, err = ringOptions(s.Keyring); err != nil {
		return nil, &KeyError{err}
	}
	at := server(s)
	at.Shared, at.Dir = true, dir
	return sqlite.OpenServer(ctx, at, opt)
}

// OpenReader opens the store of a data directory or of a server to read, which a host may be
// using. Where there is none it is [ErrNotFound]. The caller closes the reader.
func OpenReader(ctx context.Context, dir string, s config.Store) (r *sqlite.Reader, err error) {
	var opt sqlite.Options
	if opt.Keyring, err = ringOptions(s.Keyring); err != nil {
		return nil, err
	}
	if s.Driver == config.DriverPostgres {
		r, err = sqlite.OpenServerReader(ctx, server(s), opt)
	} else {
		r, err = sqlite.OpenReader(ctx, dir, opt)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noStore(placeOf(dir, s))
	}
	return r, err
}

// server is the server of the settings.
func server(s config.Store) sqlite.Server {
	return sqlite.Server{DSN: s.DSN.Reveal(), Replicated: s.Durability == config.DurabilityReplicated}
}

// ServerFault is why a server cannot keep the store, at the line of the file that chooses the server.
type ServerFault struct {
	config.Fault
	// Fix is what to change.
	Fix string
}

// InspectServer looks at the server of a configuration and changes nothing there.
func InspectServer(ctx context.Context, cfg *config.Config) (found postgres.Condition, faults []ServerFault, err error) {
	found, err = sqlite.InspectServer(ctx, server(cfg.Store))
	for _, u := range postgres.FindUnfit(err) {
		faults = append(faults, ServerFault{cfg.Fault(u.Err.Error(), "store", u.Setting), u.Fix})
	}
	if len(faults) > 0 {
		err = nil
	}
	return found, faults, err
}

// placeOf names what a store is in.
func placeOf(dir string, s config.Store) string {
	if s.Driver == config.DriverPostgres {
		return "the PostgreSQL server"
	}
	return dir
}

// storeName is the name of the database in a data directory.
const storeName = "skep.db"

// ErrNoStore is returned for a data directory without a store. It is also [ErrNotFound].
var ErrNoStore = fmt.Errorf("%w: there is no store", ErrNotFound)

func noStore(dir string) error { return fmt.Errorf("%w in %s", ErrNoStore, dir) }

// ringOptions are the keyring's of every store of a host.
func ringOptions(key config.Secret) (*keyring.Options, error) {
	ring := &keyring.Options{}
	if key == "" {
		return ring, nil
	}
	var err error
	ring.KEK, err = keyring.ParseKEK(key.Reveal())
	return ring, err
}

// StoreFault places an error of the wrapping key or of the server at its line of [store] in the
// file.
func StoreFault(cfg *config.Config, err error) error {
	if errors.Is(err, keyring.ErrWrapped) || errors.Is(err, keyring.ErrWrongKEK) {
		return config.Faults{cfg.Fault(err.Error(), "store", "keyring")}
	}
	var faults config.Faults
	for _, u := range postgres.FindUnfit(err) {
		faults = append(faults, cfg.Fault(u.Error(), "store", u.Setting))
	}
	if len(faults) > 0 {
		return faults
	}
	return err
}
