package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// PrepareContext implements [driver.ConnPrepareContext].
func (c *Conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := &stmt{c: c}
	s.text, s.numbered = withNumber(translate(query), c.numbers)
	return s, c.again(ctx, s.prepare(ctx))
}

// stmt is a prepared statement.
type stmt struct {
	c       *Conn
	text    string
	session int
	sd      *pgconn.StatementDescription
	// numbered is the table whose rows the statement numbers by its last argument, "" for none.
	numbered string
	// from is the statement with bounds that are no names, see [fromStart].
	from *stmt
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

// prepare prepares the statement in the session.
func (s *stmt) prepare(ctx context.Context) error {
	if s.sd != nil && s.session == s.c.session {
		return nil
	}
	if _, err := s.c.send(ctx, nil); err != nil {
		return err
	}
	s.c.names++
	sd, err := s.c.pg.Prepare(ctx, "s"+strconv.Itoa(s.c.names), s.text, nil)
	if err != nil {
		return err // the next call prepares it
	}
	s.session, s.sd = s.c.session, sd
	return nil
}

// Close implements [driver.Stmt].
func (s *stmt) Close() error {
	if s.c.pg.IsClosed() || s.sd == nil || s.session != s.c.session {
		return nil
	}
	if _, err := s.c.send(context.Background(), nil); err != nil {
		return err
	}
	err := s.c.pg.Deallocate(context.Background(), s.sd.Name)
	if s.c.pg.IsClosed() { // the statement went with its session
		err = nil
	}
	if s.from != nil {
		err = errors.Join(err, s.from.Close())
	}
	return err
}

// NumInput implements [driver.Stmt].
func (s *stmt) NumInput() int {
	if s.numbered != "" {
		return len(s.sd.ParamOIDs) - 1
	}
	return len(s.sd.ParamOIDs)
}

// Exec implements [driver.Stmt].
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query implements [driver.Stmt].
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }

// call makes a call of the statement.
func (s *stmt) call(ctx context.Context, args []driver.NamedValue) (*call, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if s.startsBefore(args) {
		if s.from == nil {
			s.from = &stmt{c: s.c, text: fromStart(s.text)}
		}
		return s.from.call(ctx, args)
	}
	q := &call{sd: s.sd, args: make([][]byte, len(args), len(args)+1)}
	for i, a := range args {
		var err error
		if q.args[i], err = encode(s.sd.ParamOIDs[i], a.Value); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return q, s.giveNumber(ctx, q)
}

// giveNumber gives a call the number of the row that it adds, if its statement numbers rows.
func (s *stmt) giveNumber(ctx context.Context, q *call) (err error) {
	if s.numbered == "" {
		return nil
	}
	if q.id, err = s.c.nextNumber(ctx, s.numbered); err != nil {
		return err
	}
	number, err := encode(s.sd.ParamOIDs[len(q.args)], q.id)
	q.args = append(q.args, number)
	return err
}

// startsBefore reports whether a list is asked for from its start: its bound is a number,
// where names are listed.
func (s *stmt) startsBefore(args []driver.NamedValue) bool {
	for i, a := range args {
		if _, number := a.Value.(int64); number && s.sd.ParamOIDs[i] == oidBytea {
			return s.session == s.c.session && fromStart(s.text) != s.text
		}
	}
	return false
}

// ExecContext implements [driver.StmtExecContext].
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	q, err := s.call(ctx, args)
	if err != nil {
		return nil, err
	}
	s.c.pending = append(s.c.pending, q)
	if !s.c.open {
		_, err = s.c.send(ctx, nil)
	}
	return result{ctx, s.c, q}, err
}

// QueryContext implements [driver.StmtQueryContext].
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, err := s.call(ctx, args)
	if err != nil {
		return nil, s.c.again(ctx, err)
	}
	r, err := s.c.send(ctx, q)
	if err != nil {
		return nil, s.c.again(ctx, err)
	}
	return r, nil
}

// call is a statement with its arguments.
type call struct {
	text string // of one without arguments; else sd is set
	sd   *pgconn.StatementDescription
	args [][]byte
	// what it changed, once it is done
	done    bool
	tag     string
	changed int64
	id      int64 // the number that an INSERT gives its row
}

// read reads what a call has changed.
func (q *call) read(r *pgconn.ResultReader) error {
	tag, err := r.Close()
	q.done, q.tag, q.changed = err == nil, tag.String(), tag.RowsAffected()
	return err
}
