package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
)

// Place is where a store is: in a data directory, or with a DSN on a server.
type Place struct {
	Dir string
	DSN config.Secret
}

// String names the place, and no password.
func (p Place) String() string {
	if p.DSN != "" {
		return "the PostgreSQL server"
	}
	return p.Dir
}

// CopiedTable is what a migration has copied of a table, and verified.
type CopiedTable = sqlite.TableSum

// ErrMoved: the store was moved to another place.
var ErrMoved = sqlite.ErrMoved

// Migrate moves the store of a directory to a server, or back. No host may use it. progress is
// called with each table that was copied. key is [store] keyring.
func Migrate(ctx context.Context, from, to Place, key config.Secret, progress func(CopiedTable)) (tables []CopiedTable, err error) {
	ring, err := ringOptions(key)
	if err != nil {
		return nil, &KeyError{err}
	}
	opts := sqlite.CopyOptions{KEK: ring.KEK, Progress: progress}
	dir := from.Dir
	switch {
	case from.DSN == "" && to.DSN != "":
		if opts.Secrets, err = (Data{Dir: from.Dir}).readSecrets(); err != nil {
			break
		}
		tables, err = sqlite.CopyToServer(ctx, from.Dir, sqlite.Server{DSN: to.DSN.Reveal()}, opts)
	case from.DSN != "" && to.DSN == "":
		dir = to.Dir
		opts.KeepSecrets = Data{Dir: dir}.keepSecrets
		tables, err = sqlite.CopyFromServer(ctx, sqlite.Server{DSN: from.DSN.Reveal()}, to.Dir, opts)
	default:
		return nil, errors.New("a store is moved from a data directory to a server, or back; a directory is copied with skep backup and skep restore, a database by its server's own programs")
	}
	switch {
	case errors.Is(err, keyring.ErrPlain):
		err = &KeyError{err}
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %w", noStore(from.String()), err)
	}
	return tables, Data{Dir: dir}.record("data.migrate", to.String(), asKeyError(err))
}

// CancelMigration gives up a migration that was broken off, if its copy is not whole: hosts open the
// store that was to be moved again.
func CancelMigration(ctx context.Context, from, to Place) (err error) {
	dir := from.Dir
	if from.DSN == "" {
		err = sqlite.CancelCopyToServer(ctx, from.Dir, sqlite.Server{DSN: to.DSN.Reveal()})
	} else {
		dir = to.Dir
		err = sqlite.CancelCopyFromServer(ctx, sqlite.Server{DSN: from.DSN.Reveal()}, to.Dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", noStore(from.String()), err)
	}
	return Data{Dir: dir}.record("data.migrate", "cancel "+to.String(), err)
}
