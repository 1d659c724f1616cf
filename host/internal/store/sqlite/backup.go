package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Backup implements [swarm.Store]. The copy is of one moment, has no free
// pages, and needs no log. It carries its name only when it is whole and on the
// disk. A path that is taken is refused.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, explain(err))
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := vacant(path, "choose a new name"); err != nil {
		return err
	}
	part, err := makePart(path)
	if err != nil {
		return err
	}
	if err := vacuumInto(ctx, s.path, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return install(part, path)
}

// vacant refuses a name that is taken.
func vacant(path, advice string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s is there already: %s", path, advice)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// vacuumInto copies a database as it is now. It takes a connection of its own:
// those of readers must not write at all.
func vacuumInto(ctx context.Context, path, to string) error {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

// makePart makes an empty file beside path that only its owner can read, for
// others to write into.
func makePart(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// install gives a file that is whole its name.
func install(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = vacant(path, "choose a new name")
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(filepath.Dir(path))
}

// Restore makes a data directory of a backup. dir must not hold a database; it
// may hold the keyring that belongs to the backup. The copy is checked before
// it gets its name: whose it is, its schema, and that it is not damaged.
func Restore(ctx context.Context, backup, dir string) error {
	if err := restore(ctx, backup, dir); err != nil {
		return fmt.Errorf("restore %s into %s: %w", backup, dir, explain(err))
	}
	return nil
}

func restore(ctx context.Context, backup, dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	// A name that was mistyped must not leave a directory behind.
	if _, err := os.Stat(backup); err != nil {
		return err
	}
	if err := prepareDir(dir); err != nil {
		return err
	}
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	path := filepath.Join(dir, fileName)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := vacant(name, "choose an empty data directory"); err != nil {
			return err
		}
	}
	part, err := makePart(path)
	if err != nil {
		return err
	}
	if err := copyFile(backup, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := check(ctx, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return install(part, path)
}

// copyFile writes into a file that is there.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// check reads a file that nobody else has open.
func check(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_query_only": {"1"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := identify(ctx, c); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, c)
	if err != nil {
		return err
	}
	if version == 0 {
		return fmt.Errorf("%w: it is empty", errForeign)
	}
	if err := tooNew(version, len(migrations)); err != nil {
		return err
	}
	var verdict string
	if err := c.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("the backup is damaged, use another: %s", verdict)
	}
	return nil
}
