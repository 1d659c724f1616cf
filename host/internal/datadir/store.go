package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
)

// openReader opens a data directory to read, which a host may be using. Without
// a database it is [ErrNotFound].
func openReader(ctx context.Context, dir string, key config.Secret) (*sqlite.Reader, error) {
	opt, err := StoreOptions(key, nil)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.OpenReader(ctx, dir, opt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noStore(dir)
	}
	return store, err
}

// storeName is the name of the database in a data directory.
const storeName = "skep.db"

// ErrNoStore is returned for a data directory without a store. It is also [ErrNotFound].
var ErrNoStore = fmt.Errorf("%w: there is no store", ErrNotFound)

func noStore(dir string) error { return fmt.Errorf("%w in %s", ErrNoStore, dir) }

// StoreOptions are the options of every store of a host: it is sealed with a keyring.
func StoreOptions(key config.Secret, log *slog.Logger) (sqlite.Options, error) {
	ring := &keyring.Options{}
	if key != "" {
		var err error
		if ring.KEK, err = keyring.ParseKEK(key.Reveal()); err != nil {
			return sqlite.Options{}, err
		}
	}
	return sqlite.Options{Logger: log, Keyring: ring}, nil
}

// KeyFault places an error of the wrapping key at [store] keyring in the file.
func KeyFault(cfg *config.Config, err error) error {
	if errors.Is(err, keyring.ErrWrapped) || errors.Is(err, keyring.ErrWrongKEK) {
		return config.Faults{cfg.Fault(err.Error(), "store", "keyring")}
	}
	return err
}
