package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"skep/host/internal/config"
	"skep/host/internal/keyring"
	"skep/host/internal/store/sqlite"
)

// openStore takes the data directory into use.
func (h *Host) openStore(ctx context.Context) error {
	opt, err := storeOptions(h.opt.Config.Store.Keyring, h.log)
	if err != nil {
		return err
	}
	opt.Weight = weight(h.opt.Config)
	h.store, err = sqlite.Open(ctx, h.opt.DataDir, opt)
	return keyFault(h.opt.Config, err)
}

// openReader opens a data directory to read, which a host may be using. Without
// a database it is [ErrNotFound].
func openReader(ctx context.Context, dir string, key config.Secret) (*sqlite.Reader, error) {
	opt, err := storeOptions(key, nil)
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

func noStore(dir string) error { return fmt.Errorf("%w: there is no store in %s", ErrNotFound, dir) }

// storeOptions are those of every store of a host: what it keeps is sealed.
func storeOptions(key config.Secret, log *slog.Logger) (sqlite.Options, error) {
	ring := &keyring.Options{}
	if key != "" {
		var err error
		if ring.KEK, err = keyring.ParseKEK(key.Reveal()); err != nil {
			return sqlite.Options{}, err
		}
	}
	return sqlite.Options{Logger: log, Keyring: ring}, nil
}

// keyFault gives what is wrong with the wrapping key its place in the file.
func keyFault(cfg *config.Config, err error) error {
	if errors.Is(err, keyring.ErrWrapped) || errors.Is(err, keyring.ErrWrongKEK) {
		return config.Faults{cfg.Fault(err.Error(), "store", "keyring")}
	}
	return err
}
