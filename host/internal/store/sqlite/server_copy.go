package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"skep/host/internal/store/atomicfile"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/postgres"
)

// CopyOptions are how a store is moved to another engine.
type CopyOptions struct {
	// KEK wraps the keys in a server's table, and may wrap them in a directory.
	KEK []byte
	// Progress is told of each table that was copied; nil for none.
	Progress func(TableSum)
	// Secrets of the host go along to a server, by name.
	Secrets map[string][]byte
	// KeepSecrets keeps the secrets from a server in a directory, before a host can open the store there. Nil
	// loses them.
	KeepSecrets func(secrets map[string][]byte) error
}

// CopyToServer moves the store of a data directory that no host uses to an empty schema of a
// server. Bodies are copied unopened, and their keys with them. A move that fails leaves no row
// of a tenant; one that succeeds leaves a source that no host opens. No tables are returned when
// an earlier move, which was broken off, had copied all.
func CopyToServer(ctx context.Context, dir string, at Server, opts CopyOptions) ([]TableSum, error) {
	c := &copier{progress: opts.Progress}
	if err := copyToServer(ctx, dir, at, opts, c); err != nil {
		return nil, fmt.Errorf("move the store %s to a server: %w", dir, addAdvice(err))
	}
	return c.tables, nil
}

func copyToServer(ctx context.Context, dir string, at Server, opts CopyOptions, c *copier) error {
	return withSourceDir(ctx, dir, func(path string, conn *sql.Conn) error {
		keys, err := keyringOf(dir, opts.KEK)
		if err != nil {
			return err
		}
		c.secrets, err = wrapSecrets(opts.Secrets, opts.KEK)
		if err != nil {
			return err
		}
		return moveAway(ctx, conn, func(move int64) error {
			c.move = move
			return copyFile(ctx, path, at, keys, c)
		})
	})
}

// withSourceDir calls do with the database of a data directory that no host uses, from which nothing
// is moved, or a move was broken off.
func withSourceDir(ctx context.Context, dir string, do func(path string, conn *sql.Conn) error) (err error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if err := checkReadable(ctx, path); err != nil {
		return err
	}
	db, conn, err := openConn(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	if err := checkMoved(ctx, conn); err != nil && !errors.Is(err, ErrMoving) {
		return err
	}
	return do(path, conn)
}

// copyFile copies a database that no host uses.
func copyFile(ctx context.Context, path string, at Server, keys []byte, c *copier) (err error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, "_query_only": {"1"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	from, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer from.Rollback() // it only reads
	connector, err := at.connector()
	if err != nil {
		return err
	}
	w, err := openServerWriter(ctx, connector, Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.closeConn()) }()
	switch arrived, err := markOf(ctx, w.conn, "arrived"); {
	case err != nil:
		return err
	case arrived == c.move: // before the move was broken off
		return nil
	}
	if err := checkMoved(ctx, w.conn); err != nil {
		return err
	}
	return w.fill(ctx, from, keys, c)
}

// keyringOf returns the text of a directory's keyring with its keys wrapped, nil without one.
func keyringOf(dir string, kek []byte) ([]byte, error) {
	ring, err := keyring.Open(filepath.Join(dir, keyringName), keyring.Options{KEK: kek, ReadOnly: true})
	switch {
	case err != nil:
		return nil, err
	case !ring.Exists():
		return nil, nil
	case kek == nil:
		return nil, keyring.ErrPlain
	}
	return ring.Text(kek)
}

// fill fills an empty server.
func (w *writer) fill(ctx context.Context, from *sql.Tx, keys []byte, c *copier) error {
	to, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer to.Rollback() // after Commit this does nothing
	var taken bool
	if err := to.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM instances) OR EXISTS (SELECT 1 FROM tokens) OR EXISTS (SELECT 1 FROM definitions) OR EXISTS (SELECT 1 FROM keyring)").Scan(&taken); err != nil {
		return err
	}
	if taken {
		return errors.New("the schema has a store already: name an empty one")
	}
	var secret []byte
	if err := from.QueryRowContext(ctx, findSecret).Scan(&secret); err != nil {
		return metaError("secret", err)
	}
	if _, err := to.ExecContext(ctx, "UPDATE secrets SET value = ? WHERE name = 'store'", secret); err != nil {
		return err
	}
	for n, line := range keyring.Lines(keys) {
		if _, err := to.ExecContext(ctx, "INSERT INTO keyring VALUES (?, ?)", int64(n), line); err != nil {
			return err
		}
	}
	if err := fillSecrets(ctx, to, c.secrets); err != nil {
		return err
	}
	if err := c.copy(ctx, from, to, from); err != nil {
		return err
	}
	if err := c.verify(ctx, to, from); err != nil {
		return err
	}
	for table, column := range numberColumns { // new rows are numbered behind those that were copied
		text := fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', '%s'), (SELECT coalesce(max(%[2]s), 0) + 1 FROM %[1]s), false)", table, column)
		var next int64
		if err := to.QueryRowContext(ctx, text).Scan(&next); err != nil {
			return err
		}
	}
	if _, err := to.ExecContext(ctx, "INSERT INTO meta VALUES ('arrived', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", c.move); err != nil {
		return err
	}
	if err := to.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errUncertain, err)
	}
	return nil
}

// CopyFromServer moves the store of a server that no host uses to a data directory without
// one, as [CopyToServer] does the other way.
func CopyFromServer(ctx context.Context, at Server, dir string, opts CopyOptions) ([]TableSum, error) {
	c := &copier{progress: opts.Progress, keepSecrets: opts.KeepSecrets}
	if err := copyFromServer(ctx, at, dir, opts.KEK, c); err != nil {
		return nil, fmt.Errorf("move the store of a server to %s: %w", dir, addAdvice(err))
	}
	return c.tables, nil
}

func copyFromServer(ctx context.Context, at Server, dir string, kek []byte, c *copier) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	return withSourceServer(ctx, at, func(w *writer, readers *sql.DB, connector *postgres.Connector) error {
		keys, err := keysOf(connector, kek)
		if err != nil {
			return err
		}
		if c.secrets, err = unwrapSecrets(ctx, readers, kek); err != nil {
			return err
		}
		return moveAway(ctx, w.conn, func(move int64) error {
			c.move = move
			return w.empty(ctx, readers, dir, keys, c)
		})
	})
}

// withSourceServer is [withSourceDir] for a server.
func withSourceServer(ctx context.Context, at Server, do func(*writer, *sql.DB, *postgres.Connector) error) (err error) {
	connector, err := at.connector()
	if err != nil {
		return err
	}
	readers := sql.OpenDB(connector.ReadOnly())
	defer func() { err = errors.Join(err, readers.Close()) }()
	if err := checkServerVersion(ctx, readers); err != nil {
		return err
	}
	w, err := openServerWriter(ctx, connector, Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.closeConn()) }()
	if err := checkMoved(ctx, w.conn); err != nil && !errors.Is(err, ErrMoving) {
		return err
	}
	return do(w, readers, connector)
}

// hasArrived reports whether a directory has what came with a move.
func hasArrived(ctx context.Context, dir string, move int64) (yes bool, err error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return false, nil
	}
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, "_query_only": {"1"}}))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	arrived, err := markOf(ctx, db, "arrived")
	return arrived == move, err
}

// keysOf returns the text of a server's keyring as it is, nil without one.
func keysOf(c *postgres.Connector, kek []byte) (text []byte, err error) {
	table := newServerKeyring(c.ReadOnly(), 0)
	defer func() { err = errors.Join(err, table.close()) }()
	if _, err := table.Load(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	ring, err := keyring.OpenTable(table, keyring.Options{KEK: kek, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return ring.Text(kek)
}

// empty makes a data directory of what a server has.
func (w *writer) empty(ctx context.Context, readers *sql.DB, dir string, keys []byte, c *copier) (err error) {
	if arrived, err := hasArrived(ctx, dir, c.move); arrived || err != nil { // before the move was broken off
		return err
	}
	for _, name := range []string{fileName, keyringName} {
		if err := checkVacant(filepath.Join(dir, name), "choose a directory without a store, or move the file away"); err != nil {
			return err
		}
	}
	if err := PrepareDir(dir); err != nil {
		return err
	}
	part, err := os.MkdirTemp(dir, "moving.*.part")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	path := filepath.Join(part, fileName)
	c.check = true
	if err := copyServer(ctx, readers, w.secret, path, c); err != nil {
		return err
	}
	err = Restore(ctx, path, dir, func() error {
		if c.keepSecrets != nil {
			if err := c.keepSecrets(c.secrets); err != nil {
				return err
			}
		}
		if keys == nil {
			return nil
		}
		return atomicfile.CreateBytes(filepath.Join(dir, keyringName), 0o600, keys)
	})
	if _, stat := os.Stat(filepath.Join(dir, fileName)); err != nil && stat == nil {
		err = fmt.Errorf("%w: %w", errUncertain, err)
	}
	return err
}
