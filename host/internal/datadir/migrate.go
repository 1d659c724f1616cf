package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"skep/host/internal/definition"
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
	var missing error
	switch {
	case from.DSN == "" && to.DSN != "":
		if opts.Secrets, err = (Data{Dir: from.Dir}).readSecrets(); err != nil {
			break
		}
		if tables, err = sqlite.CopyToServer(ctx, from.Dir, sqlite.Server{DSN: to.DSN.Reveal()}, opts); err == nil {
			missing = to.keepModules(ctx, definition.DataModules(from.Dir))
		}
	case from.DSN != "" && to.DSN == "":
		dir = to.Dir
		opts.KeepSecrets = func(secrets map[string][]byte) (err error) {
			if err = (Data{Dir: dir}).keepSecrets(secrets); err == nil {
				missing, err = from.copyModules(ctx, definition.DataModules(dir))
			}
			return err
		}
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
	if err == nil && missing != nil {
		err = fmt.Errorf("the store is moved, and need not be again, but not all modules: %w", missing)
	}
	return tables, Data{Dir: dir}.record("data.migrate", to.String(), asKeyError(err))
}

// keepModules gives the modules of a directory rows on a server. A host that starts with the directory does it, too.
func (p Place) keepModules(ctx context.Context, from definition.ModuleDir) (err error) {
	m, err := sqlite.OpenServerModules(ctx, sqlite.Server{DSN: p.DSN.Reveal()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return definition.KeepRows(ctx, from, m)
}

// copyModules copies the modules that a server has to a directory. Those that are damaged are missing.
func (p Place) copyModules(ctx context.Context, to definition.ModuleDir) (missing, err error) {
	m, err := sqlite.OpenServerModules(ctx, sqlite.Server{DSN: p.DSN.Reveal()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	damaged, err := definition.CopyRows(ctx, m, to)
	return errors.Join(slices.Collect(maps.Values(damaged))...), err
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
