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
	from, err := s.readers.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer from.Rollback() // it only reads
	to, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer to.Rollback() // after Commit this does nothing
	if _, err := to.ExecContext(ctx, "INSERT INTO meta VALUES ('secret', ?), ('epoch', 0)", s.writer.secret); err != nil {
		return err
	}
	for _, table := range append([]string{"meta"}, copiedTables...) {
		if err := copyTable(ctx, from, to, table); err != nil {
			return fmt.Errorf("copy table %s: %w", table, err)
		}
	}
	return to.Commit()
}

// copyTable copies the rows of a table into one that has its columns.
func copyTable(ctx context.Context, from, to *sql.Tx, table string) (err error) {
	columns, err := to.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	names, err := collect(columns, err, func(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) })
	if err != nil {
		return err
	}
	list, marks := strings.Join(names, ", "), strings.Repeat(", ?", len(names))[2:]
	add, err := to.PrepareContext(ctx, "INSERT INTO "+table+" ("+list+") VALUES ("+marks+")")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	rows, err := from.QueryContext(ctx, "SELECT "+list+" FROM "+table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if _, err := add.ExecContext(ctx, values...); err != nil {
			return err
		}
	}
	return rows.Err()
}
