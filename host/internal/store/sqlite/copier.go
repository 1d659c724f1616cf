package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// copiedTables are the tables that are copied as they are: both engines have them with the same
// columns.
var copiedTables = []string{
	"instances", "tasks", "queue", "events", "agents", "history", "submissions", "turns", "journal", "spaces", "kv",
	"keys", "chores", "tenants", "tokens", "definitions", "loaded", "outbox", "namers", "blobs", "blob_uses",
	"gateway_realms", "gateway_state", "quarantine", "usage",
}

// TableSum is what a table has: how many rows, and a sum of them in which their order does not
// count.
type TableSum struct {
	Table string
	Rows  int64
	sum   [4]uint64
}

// Sum is the sum in hexadecimal.
func (t TableSum) Sum() string {
	var b [32]byte
	for i, n := range t.sum {
		binary.BigEndian.PutUint64(b[8*i:], n)
	}
	return hex.EncodeToString(b[:])
}

// add counts a row. Its digest is of every value with its length.
func (t *TableSum) add(values []any) {
	h := sha256.New()
	var size [9]byte
	for _, v := range values {
		var body []byte
		switch v := v.(type) {
		case nil:
			size[0] = 0
		case int64:
			size[0], body = 1, binary.BigEndian.AppendUint64(nil, uint64(v))
		case string:
			size[0], body = 2, []byte(v)
		case []byte:
			size[0], body = 2, v // one engine has texts where the other has bytes
		default:
			size[0], body = 3, fmt.Appendf(nil, "%v", v)
		}
		binary.BigEndian.PutUint64(size[1:], uint64(len(body)))
		h.Write(size[:])
		h.Write(body)
	}
	digest := h.Sum(nil)
	for i := range t.sum {
		t.sum[i] += binary.BigEndian.Uint64(digest[8*i:])
	}
	t.Rows++
}

// copier copies the tables of one engine to the other.
type copier struct {
	// secrets of hosts go along, wrapped to a server and plain from it. keepSecrets keeps them in a directory.
	secrets     map[string][]byte
	keepSecrets func(map[string][]byte) error
	progress    func(TableSum) // may be nil
	// check has a copy of a server read again before it is done.
	check bool
	// move is the number of the move that the copy has arrived with, 0 for a backup.
	move   int64
	tables []TableSum
}

// copiedMeta are the rows of the table meta that are copied.
const copiedMeta = "name IN ('journals', 'sealed')"

// copy copies all rows of tenants. file is the side that is of the embedded engine.
func (c *copier) copy(ctx context.Context, from, to, file *sql.Tx) error {
	sum, err := copyTable(ctx, from, to, "meta", copiedMeta, []string{"name", "value"})
	if err != nil {
		return err
	}
	c.tables = []TableSum{sum}
	for _, table := range copiedTables {
		names, err := columnsOf(ctx, file, table)
		if err == nil {
			sum, err = copyTable(ctx, from, to, table, "1 = 1", names)
		}
		if err != nil {
			return err
		}
		c.tables = append(c.tables, sum)
		if c.progress != nil {
			c.progress(sum)
		}
	}
	return nil
}

// verify reads the copy again, and compares it with what was copied.
func (c *copier) verify(ctx context.Context, to, file *sql.Tx) error {
	for _, want := range c.tables {
		names, where := []string{"name", "value"}, copiedMeta
		if want.Table != "meta" {
			var err error
			if names, err = columnsOf(ctx, file, want.Table); err != nil {
				return err
			}
			where = "1 = 1"
		}
		got := TableSum{Table: want.Table}
		err := eachRow(ctx, to, want.Table, where, names, func(values []any) error {
			got.add(values)
			return nil
		})
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("table %s has %d rows with the sum %s, and its copy %d with %s: nothing was moved", want.Table, want.Rows, want.Sum(), got.Rows, got.Sum())
		}
	}
	return nil
}

// columnsOf returns the columns of a table of the embedded engine.
func columnsOf(ctx context.Context, file *sql.Tx, table string) ([]string, error) {
	rows, err := file.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	return collect(rows, err, func(rows *sql.Rows) (name string, err error) { return name, rows.Scan(&name) })
}

// eachRow calls do with each row of a table, whose values it may keep until it returns.
func eachRow(ctx context.Context, from *sql.Tx, table, where string, names []string, do func([]any) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy table %s: %w", table, err)
		}
	}()
	rows, err := from.QueryContext(ctx, "SELECT "+strings.Join(names, ", ")+" FROM "+table+" WHERE "+where)
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
		keepEmpty(values)
		if err := do(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// copyTable copies rows of a table into one that has its columns.
func copyTable(ctx context.Context, from, to *sql.Tx, table, where string, names []string) (sum TableSum, err error) {
	sum.Table = table
	add, err := to.PrepareContext(ctx, "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Repeat(", ?", len(names))[2:]+")")
	if err != nil {
		return sum, fmt.Errorf("copy table %s: %w", table, err)
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	waiting := 0
	err = eachRow(ctx, from, table, where, names, func(values []any) error {
		sum.add(values)
		r, err := add.ExecContext(ctx, values...)
		if err != nil {
			return err
		}
		if waiting += rowSize(values); waiting < copyChunk {
			return nil
		}
		waiting = 0
		_, err = r.RowsAffected() // sends to a server what waits for it
		return err
	})
	return sum, err
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
