package cluster

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Settings of sessions. A sign of life need not be on the disk. No statement waits long for a row that
// a host holds which does not answer.
var (
	beatSettings = map[string]string{"synchronous_commit": "off", "statement_timeout": "3000"}
	moveSettings = map[string]string{"synchronous_commit": "on", "lock_timeout": "300"}
)

// Patience of sessions: a server that has lost its power closes no connection, and the system gives one
// up after a quarter of an hour. A statement that has no answer for so long ends with its connection,
// and the next one makes another.
const (
	beatPatience = 5 * time.Second
	movePatience = time.Minute
)

// session is a connection that is made again when it is gone. It is used by one goroutine at a
// time.
type session struct {
	dsn      string
	settings map[string]string
	// patience bounds a statement, with the connecting before it; 0 for no bound.
	patience time.Duration
	conn     *pgx.Conn
	// schema is set once the session waits for notices.
	schema string
}

// bound returns the context of one statement.
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.patience)
}

func (s *session) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	config, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "skep cluster"
	for name, value := range s.settings {
		config.RuntimeParams[name] = value
	}
	s.conn, err = pgx.ConnectConfig(ctx, config)
	return err
}

// exec runs a statement. One without arguments may be several.
func (s *session) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.change(ctx, text, args...)
	return err
}

// change runs a statement, and returns how many rows it has changed.
func (s *session) change(ctx context.Context, text string, args ...any) (rows int64, err error) {
	ctx, stop := s.bound(ctx)
	defer stop()
	if err := s.connect(ctx); err != nil {
		return 0, err
	}
	tag, err := s.conn.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// query calls each for every row.
func (s *session) query(ctx context.Context, text string, args []any, each func(pgx.Rows) error) error {
	ctx, stop := s.bound(ctx)
	defer stop()
	if err := s.connect(ctx); err != nil {
		return err
	}
	rows, err := s.conn.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// waitNotice waits for a notice on a channel that names the session's schema.
func (s *session) waitNotice(ctx context.Context, channel string) error {
	if s.conn == nil || s.conn.IsClosed() {
		s.schema = ""
	}
	if s.schema == "" {
		if err := s.exec(ctx, "LISTEN "+channel); err != nil {
			return err
		}
		err := s.query(ctx, "SELECT current_schema()", nil, func(r pgx.Rows) error { return r.Scan(&s.schema) })
		if err != nil {
			return err
		}
	}
	for {
		notice, err := s.conn.WaitForNotification(ctx)
		if err != nil || notice.Payload == s.schema {
			return err
		}
	}
}

func (s *session) close() error {
	if s.conn == nil {
		return nil
	}
	return s.conn.Close(context.Background())
}
