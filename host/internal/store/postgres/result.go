package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
)

// result is what a statement has changed. To ask for it sends the statement.
type result struct {
	ctx  context.Context
	c    *Conn
	call *call
}

func (r result) wait() error {
	if r.call.done {
		return nil
	}
	if _, err := r.c.send(r.ctx, nil); err != nil {
		return err
	}
	if !r.call.done {
		return errors.New("the statement was undone")
	}
	return nil
}

// LastInsertId implements [driver.Result]. It is known before the statement is sent.
func (r result) LastInsertId() (int64, error) { return r.call.id, nil }

// RowsAffected implements [driver.Result].
func (r result) RowsAffected() (int64, error) {
	err := r.wait()
	return r.call.changed, err
}

// rows are the answer to a query.
type rows struct {
	results *pgconn.MultiResultReader
	reader  *pgconn.ResultReader
}

// Columns implements [driver.Rows].
func (r *rows) Columns() []string {
	fields := r.reader.FieldDescriptions()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// Close implements [driver.Rows].
func (r *rows) Close() error { return r.results.Close() }

// Next implements [driver.Rows].
func (r *rows) Next(into []driver.Value) (err error) {
	if !r.reader.NextRow() {
		if _, err := r.reader.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, v := range r.reader.Values() {
		if into[i], err = decode(r.reader.FieldDescriptions()[i].DataTypeOID, v); err != nil {
			return err
		}
	}
	return nil
}
