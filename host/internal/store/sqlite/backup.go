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

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/atomicfile"
)

// Backup implements [swarm.Store]. The copy is of one moment, has no free
// pages, and needs no log. It carries its name only when it is whole and on the
// disk. A path that is taken is refused.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.backup(ctx, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, addAdvice(err))
	}
	return nil
}

func (s *Store) backup(ctx context.Context, path string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := checkVacant(path, "choose a new name"); err != nil {
		return err
	}
	part, err := makePart(path)
	if err != nil {
		return err
	}
	if err := s.copyTo(ctx, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nameFile(part, path)
}

// checkVacant refuses a name that is taken.
func checkVacant(path, advice string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s is there already: %s", path, advice)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// copyTo writes a copy into an empty file.
func (s *Store) copyTo(ctx context.Context, path string) error {
	switch {
	case s.writer != nil:
		return s.writer.database.copyTo(ctx, s, path)
	case s.keyring != nil: // of a [Reader] of a server
		var secret []byte
		if err := s.readers.queryText(findServerSecret).first(ctx, &secret); err != nil {
			return metaError("secret", err)
		}
		return copyServer(ctx, s.readers.db, secret, path, &copier{})
	}
	return vacuumInto(ctx, s.path, path)
}

// vacuumInto copies a database as it is now. It takes a new connection:
// readers' connections must not write at all.
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

// nameFile gives a file that is whole its name.
func nameFile(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = checkVacant(path, "choose a new name")
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return atomicfile.SyncDir(os.Open(filepath.Dir(path)))
}

// Restore makes a data directory of a backup. dir must not hold a database; it
// may hold the keyring that belongs to the backup. The copy is checked before
// it gets its name: whose it is, its schema, and that it is not damaged. What belongs
// beside it is put there by others, unless that is nil: the name comes last, so that a
// restore that was cut short can be repeated.
func Restore(ctx context.Context, backup, dir string, others func() error) error {
	if err := restore(ctx, backup, dir, others); err != nil {
		return fmt.Errorf("restore %s into %s: %w", backup, dir, addAdvice(err))
	}
	return nil
}

func restore(ctx context.Context, backup, dir string, others func() error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	// A name that was mistyped must not leave a directory behind.
	in, err := openBackup(backup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := PrepareDir(dir); err != nil {
		return err
	}
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	path := filepath.Join(dir, fileName)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := checkVacant(name, "choose an empty data directory"); err != nil {
			return err
		}
	}
	part, err := makePart(path)
	if err != nil {
		return err
	}
	if err := copyBackup(ctx, in, part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	err = checkBackup(ctx, part)
	if err == nil && others != nil {
		err = others()
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nameFile(part, path)
}

// sqliteMagic begins every database, see https://www.sqlite.org/fileformat.html#magic_header_string.
const sqliteMagic = "SQLite format 3\x00"

// openBackup opens a file that begins as a database. A symbolic link is refused: it may
// lead elsewhere by the time the copy is made.
func openBackup(path string) (_ *os.File, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a symbolic link: name the file that it leads to", path)
	}
	if err := checkWhole(path); err != nil {
		return nil, err
	}
	f, err := pathcheck.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, len(sqliteMagic))
	switch n, err := f.ReadAt(begin, 0); {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, errors.Join(err, f.Close())
	case n == 0:
		return nil, errors.Join(fmt.Errorf("%w: it is empty", errForeign), f.Close())
	case string(begin) != sqliteMagic:
		return nil, errors.Join(fmt.Errorf("%w: it is no database; a backup is a file that `skep backup` made", errForeign), f.Close())
	}
	return f, nil
}

// checkWhole refuses a file beside which a log lies: what the log holds would be missing.
func checkWhole(path string) error {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Lstat(path + suffix); err == nil && info.Size() > 0 {
			return fmt.Errorf("%s lies beside it: %s was copied while it was in use and is not whole: make a backup with `skep backup`", path+suffix, path)
		}
	}
	return nil
}

// copyChunk is what a copy reads between two looks at its context, in bytes.
const copyChunk = 1 << 20

// copyBackup writes into a file that is there.
func copyBackup(ctx context.Context, in io.Reader, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(out, in, copyChunk)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, out.Close())
}

// checkBackup reads a file that no other process has open.
func checkBackup(ctx context.Context, path string) (err error) {
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
	version, err := identify(ctx, c)
	if err != nil {
		return err
	}
	if version == 0 {
		return fmt.Errorf("%w: it is empty", errForeign)
	}
	var secret []byte
	if err := c.QueryRowContext(ctx, findSecret).Scan(&secret); err != nil {
		return metaError("secret", err)
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
