package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Connector makes connections for [sql.OpenDB].
type Connector struct {
	config   *pgconn.Config
	numbers  map[string]string
	readOnly bool
	// Replicated refuses a server that acknowledges what only it has.
	Replicated bool
	// Logger is told when the server is away while a group is written; nil is told nothing.
	Logger *slog.Logger
	// Shared leaves other hosts their writes.
	Shared bool
	// stop ends once the host stops, for all connectors that are made of this one.
	stop    context.Context
	stopped context.CancelFunc
}

// NewConnector makes a connector for a DSN. numbers names, by table, the column that numbers
// its rows: an INSERT into such a table gets a number, which is its LastInsertId without an
// answer of the server.
func NewConnector(dsn string, numbers map[string]string) (*Connector, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, ErrDSN
	}
	c := &Connector{config: config, numbers: numbers}
	c.stop, c.stopped = context.WithCancel(context.Background())
	config.DialFunc = boundStop(config.DialFunc, c.stop)
	return c, nil
}

// ReadOnly returns a connector whose connections cannot write.
func (c *Connector) ReadOnly() *Connector {
	config := c.config.Copy()
	config.RuntimeParams["default_transaction_read_only"] = "on"
	if config.ValidateConnect != nil {
		// To target_session_attrs=read-write such a connection is one to a standby.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return &Connector{config: config, readOnly: true, stop: c.stop, stopped: c.stopped}
}

// Durable returns a connector whose commits are acknowledged when they are durable.
func (c *Connector) Durable() *Connector {
	config := c.config.Copy()
	for name, value := range writerSettings {
		config.RuntimeParams[name] = value
	}
	return &Connector{config: config, numbers: c.numbers, readOnly: c.readOnly, stop: c.stop, stopped: c.stopped}
}

// Host names the server.
func (c *Connector) Host() string { return c.config.Host }

// Connect implements [driver.Connector].
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

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
	blocks  map[string]*block
	host    *host // nil for a connection that writes no groups
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

// unlockTime bounds how long a connection that closes waits for the server.
const unlockTime = time.Second

// Close implements [driver.Conn]. The host's lock is free when it returns: the server ends a session some
// time after its connection.
func (c *Conn) Close() error {
	if c.host != nil && !c.pg.IsClosed() && c.pg.TxStatus() == 'I' {
		ctx, stop := context.WithTimeout(context.Background(), unlockTime)
		defer stop()
		_, _ = c.pg.Exec(ctx, "SELECT pg_advisory_unlock_all()").ReadAll() // without it the server frees it
	}
	return c.pg.Close(context.Background())
}

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
