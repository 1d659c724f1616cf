package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"time"
)

// copyTo copies the server's tables, as they are at one moment, into a database of the embedded
// engine. Bodies are copied unopened: what they are sealed for are names, which stay.
func (d *serverDatabase) copyTo(ctx context.Context, s *Store, path string) (err error) {
	return copyServer(ctx, s.readers.db, s.writer.secret, path, &copier{})
}

// copyServer copies what readers see of a server, and the secret.
func copyServer(ctx context.Context, readers *sql.DB, secret []byte, path string, how *copier) (err error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"_txlock": {"immediate"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := migrate(ctx, c, migrations, time.Now()); err != nil {
		return err
	}
	from, err := readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer from.Rollback() // it only reads
	to, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer to.Rollback() // after Commit this does nothing
	if _, err := to.ExecContext(ctx, "INSERT INTO meta VALUES ('secret', ?), ('epoch', 0)", secret); err != nil {
		return err
	}
	if how.move != 0 {
		if _, err := to.ExecContext(ctx, "INSERT INTO meta VALUES ('arrived', ?)", how.move); err != nil {
			return err
		}
	}
	err = how.copy(ctx, from, to, to)
	if err == nil && how.check {
		err = how.verify(ctx, to, to)
	}
	if err != nil {
		return err
	}
	return to.Commit()
}
