package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"
)

// CopyToServer copies the database of a data directory that no host uses to an empty schema of
// a server. Bodies are copied unopened: the directory's keyring belongs to the copy. A copy
// that fails leaves no row of a tenant.
func CopyToServer(ctx context.Context, dir string, at Server) error {
	if err := copyToServer(ctx, dir, at); err != nil {
		return fmt.Errorf("copy the store %s to a server: %w", dir, addAdvice(err))
	}
	return nil
}

func copyToServer(ctx context.Context, dir string, at Server) (err error) {
	l, err := takeLock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	path := filepath.Join(dir, fileName)
	if err := checkReadable(ctx, path); err != nil {
		return err
	}
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
	return w.fill(ctx, from)
}

// fill fills an empty server.
func (w *writer) fill(ctx context.Context, from *sql.Tx) error {
	to, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer to.Rollback() // after Commit this does nothing
	var taken bool
	if err := to.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM instances) OR EXISTS (SELECT 1 FROM tokens) OR EXISTS (SELECT 1 FROM definitions)").Scan(&taken); err != nil {
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
	if err := copyTables(ctx, from, to, from); err != nil {
		return err
	}
	for table, column := range numberColumns { // new rows are numbered behind those that were copied
		text := fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', '%s'), (SELECT coalesce(max(%[2]s), 0) + 1 FROM %[1]s), false)", table, column)
		var next int64
		if err := to.QueryRowContext(ctx, text).Scan(&next); err != nil {
			return err
		}
	}
	return to.Commit()
}
