package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// copiedTables are the tables that a backup of a server copies as they are: both engines have
// them with the same columns.
var copiedTables = []string{
	"instances", "tasks", "queue", "events", "agents", "history", "submissions", "turns", "journal", "spaces", "kv",
	"keys", "chores", "tenants", "tokens", "definitions", "loaded", "outbox", "namers", "blobs", "blob_uses",
	"gateway_realms", "gateway_state",
}

// copyTo copies the server's tables, as they are at one moment, into a database of the embedded
// engine. Bodies are copied unopened: what they are sealed for are names, which stay.
func (d *serverDatabase) copyTo(ctx context.Context, s *Store, path string) (err error) {
	return copyServer(ctx, s.readers.db, s.writer.secret, path)
}

// copyServer copies what readers see of a server, and the secret.
func copyServer(ctx context.Context, readers *sql.DB, secret []byte, path string) (err error) {
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
	if err := copyTables(ctx, from, to, to); err != nil {
		return err
	}
	return to.Commit()
}

// copyTables copies all rows of tenants. file is the side that is of the embedded engine.
func copyTables(ctx context.Context, from, to, file *sql.Tx) error {
	if err := copyTable(ctx, from, to, "meta", "name IN ('journals', 'sealed')", []string{"name", "value"}); err != nil {
		return err
	}
	for _, table := range copiedTables {
		columns, err := file.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
		names, err := collect(columns, err, func(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) })
		if err == nil {
			err = copyTable(ctx, from, to, table, "1 = 1", names)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyTable copies rows of a table into one that has its columns.
func copyTable(ctx context.Context, from, to *sql.Tx, table, where string, names []string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy table %s: %w", table, err)
		}
	}()
	list, marks := strings.Join(names, ", "), strings.Repeat(", ?", len(names))[2:]
	add, err := to.PrepareContext(ctx, "INSERT INTO "+table+" ("+list+") VALUES ("+marks+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	rows, err := from.QueryContext(ctx, "SELECT "+list+" FROM "+table+" WHERE "+where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for waiting := 0; rows.Next(); {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		keepEmpty(values)
		r, err := add.ExecContext(ctx, values...)
		if err != nil {
			return err
		}
		if waiting += rowSize(values); waiting < copyChunk {
			continue
		}
		if _, err := r.RowsAffected(); err != nil { // sends to a server what waits for it
			return err
		}
		waiting = 0
	}
	return rows.Err()
}

// rowSize is about what a row takes in memory, in bytes.
func rowSize(values []any) (n int) {
	for _, v := range values {
		n += 64
		if b, ok := v.([]byte); ok {
			n += len(b)
		}
	}
	return n
}
