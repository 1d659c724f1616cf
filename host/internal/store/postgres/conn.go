package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// Connector makes connections for [sql.OpenDB].
type Connector struct {
	config   *pgconn.Config
	numbers  map[string]string
	readOnly bool
	// Replicated refuses a server that acknowledges what only it has.
	Replicated bool
}

// NewConnector makes a connector for a DSN. numbers names, by table, the column that numbers
// its rows: an INSERT into such a table has it as its LastInsertId.
func NewConnector(dsn string, numbers map[string]string) (*Connector, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return &Connector{config: config, numbers: numbers}, nil
}

// ReadOnly returns a connector whose connections cannot write.
func (c *Connector) ReadOnly() *Connector {
	config := c.config.Copy()
	config.RuntimeParams["default_transaction_read_only"] = "on"
	return &Connector{config: config, readOnly: true}
}

// Host names the server.
func (c *Connector) Host() string { return c.config.Host }

// Connect implements [driver.Connector].
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) { return c.connect(ctx) }

func (c *Connector) connect(ctx context.Context) (*Conn, error) {
	pg, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}
	return &Conn{pg: pg, numbers: c.numbers, readOnly: c.readOnly}, nil
}

// Driver implements [driver.Connector].
func (c *Connector) Driver() driver.Driver { return noDriver{} }

// noDriver is the driver of a connector, which is never asked for a connection by name.
type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("connections are made by a connector")
}

// Conn is a connection. It is used by one goroutine at a time.
type Conn struct {
	pg       *pgconn.PgConn
	numbers  map[string]string
	readOnly bool
	// session counts the server's sessions: statements of an earlier one are prepared again.
	session, names int
	// open: a transaction has begun, so that changes may wait in pending.
	open    bool
	pending []*call
	host    *host // nil for a connection that writes no groups
}

// call is a statement with its arguments.
type call struct {
	text string // of one without arguments; else sd is set
	sd   *pgconn.StatementDescription
	args [][]byte
	// what it changed, once it is done
	done        bool
	tag         string
	changed, id int64
}

var (
	_ driver.ConnPrepareContext = (*Conn)(nil)
	_ driver.ConnBeginTx        = (*Conn)(nil)
	_ driver.ExecerContext      = (*Conn)(nil)
	_ driver.Validator          = (*Conn)(nil)
)

// Prepare implements [driver.Conn].
func (c *Conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Close implements [driver.Conn].
func (c *Conn) Close() error { return c.pg.Close(context.Background()) }

// Begin implements [driver.Conn].
func (c *Conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx implements [driver.ConnBeginTx]. A transaction that only reads sees one moment.
func (c *Conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	text := "BEGIN"
	if opts.ReadOnly {
		text = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	c.open = true
	c.pending = append(c.pending, &call{text: text})
	if !c.readOnly {
		return tx{c}, nil
	}
	_, err := c.send(ctx, nil) // the pool tries another connection only before the first statement
	return tx{c}, c.again(ctx, err)
}

// again makes the pool repeat what has failed because its connection broke while it was idle, on
// another one. It may where nothing is written.
func (c *Conn) again(ctx context.Context, err error) error {
	if err != nil && c.readOnly && c.pg.IsClosed() && ctx.Err() == nil {
		return driver.ErrBadConn
	}
	return err
}

type tx struct{ c *Conn }

// Commit implements [driver.Tx].
func (t tx) Commit() error { return t.c.end(context.Background(), "COMMIT") }

// Rollback implements [driver.Tx].
func (t tx) Rollback() error { return t.c.end(context.Background(), "ROLLBACK") }

// end ends the transaction. One that has failed answers COMMIT with ROLLBACK, and no error.
func (c *Conn) end(ctx context.Context, text string) error {
	if text == "ROLLBACK" {
		c.pending = c.pending[:0]
	}
	q := &call{text: text}
	c.pending = append(c.pending, q)
	c.open = false
	if _, err := c.send(ctx, nil); err != nil {
		return err
	}
	if q.tag != text {
		return fmt.Errorf("the server answers %s with %s: the transaction had failed before", text, q.tag)
	}
	return nil
}

// ExecContext implements [driver.ExecerContext] for texts without arguments, of any number of
// statements.
func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	if _, err := c.send(ctx, nil); err != nil {
		return nil, err
	}
	results, err := c.pg.Exec(ctx, translate(query)).ReadAll()
	if err != nil {
		return nil, err
	}
	done := &call{done: true}
	for _, r := range results {
		done.changed += r.CommandTag.RowsAffected()
	}
	return result{call: done}, nil
}

// IsValid implements [driver.Validator]. A connection of groups is made again by itself.
func (c *Conn) IsValid() bool { return c.host != nil || !c.pg.IsClosed() }

// binaryFormat is the format of all arguments and columns.
var binaryFormat = []int16{1}

// send sends what waits and a query behind it, and returns the rows of the query.
func (c *Conn) send(ctx context.Context, query *call) (*rows, error) {
	calls := c.pending
	c.pending = c.pending[:0]
	if query != nil {
		calls = append(calls, query)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	batch := &pgconn.Batch{}
	for _, q := range calls {
		if q.sd == nil {
			batch.ExecParams(q.text, nil, nil, nil, nil)
		} else {
			batch.ExecStatement(q.sd, q.args, binaryFormat, binaryFormat)
		}
	}
	results := c.pg.ExecBatch(ctx, batch)
	for _, q := range calls {
		if !results.NextResult() {
			return nil, missing(results.Close())
		}
		if q == query {
			return &rows{results: results, reader: results.ResultReader()}, nil
		}
		if err := q.read(results.ResultReader()); err != nil {
			return nil, errors.Join(err, results.Close())
		}
	}
	return nil, results.Close()
}

// missing is the error of a statement without an answer.
func missing(err error) error {
	if err == nil {
		err = errors.New("the server ended its answers early")
	}
	return err
}

// read reads what a call has changed, and the number that an INSERT returns.
func (q *call) read(r *pgconn.ResultReader) error {
	for r.NextRow() {
		v, err := decode(r.FieldDescriptions()[0].DataTypeOID, r.Values()[0])
		if err != nil {
			return err
		}
		q.id, _ = v.(int64)
	}
	tag, err := r.Close()
	q.done, q.tag, q.changed = err == nil, tag.String(), tag.RowsAffected()
	return err
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *Conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := &stmt{c: c, text: withNumber(translate(query), c.numbers)}
	return s, c.again(ctx, s.prepare(ctx))
}

// stmt is a prepared statement.
type stmt struct {
	c       *Conn
	text    string
	session int
	sd      *pgconn.StatementDescription
	// from is the statement with bounds that are no names, see [fromStart].
	from *stmt
}

var (
	_ driver.StmtExecContext  = (*stmt)(nil)
	_ driver.StmtQueryContext = (*stmt)(nil)
)

// prepare prepares the statement in the session.
func (s *stmt) prepare(ctx context.Context) (err error) {
	if s.sd != nil && s.session == s.c.session {
		return nil
	}
	if _, err := s.c.send(ctx, nil); err != nil {
		return err
	}
	s.c.names++
	s.session = s.c.session
	s.sd, err = s.c.pg.Prepare(ctx, "s"+strconv.Itoa(s.c.names), s.text, nil)
	return err
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
	if s.from != nil {
		err = errors.Join(err, s.from.Close())
	}
	return err
}

// NumInput implements [driver.Stmt].
func (s *stmt) NumInput() int { return len(s.sd.ParamOIDs) }

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
	q := &call{sd: s.sd, args: make([][]byte, len(args))}
	for i, a := range args {
		var err error
		if q.args[i], err = encode(s.sd.ParamOIDs[i], a.Value); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return q, nil
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

// LastInsertId implements [driver.Result].
func (r result) LastInsertId() (int64, error) { return r.call.id, r.wait() }

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

// DB returns the connection as the only one of a pool, which closes it.
func (c *Conn) DB() *sql.DB {
	db := sql.OpenDB(single{c})
	db.SetMaxOpenConns(1)
	return db
}

// single connects with a connection that is there.
type single struct{ c *Conn }

// Connect implements [driver.Connector].
func (s single) Connect(context.Context) (driver.Conn, error) { return s.c, nil }

// Driver implements [driver.Connector].
func (single) Driver() driver.Driver { return noDriver{} }
