package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

// readerPatience is how long a host's reads wait for a server that is away: as long as it may take
// until its standby is promoted.
const readerPatience = 30 * time.Second

// The pause between two attempts to read doubles from minRereadPause to maxRereadPause.
const (
	minRereadPause = 5 * time.Millisecond
	maxRereadPause = 100 * time.Millisecond
)

// errNoAnswer ends an attempt to read.
var errNoAnswer = errors.New("the PostgreSQL server does not answer")

// query is a question that may be asked again: its connection may break before it is answered
// and in the midst of the rows.
type query struct {
	patience time.Duration
	ask      func(context.Context) (*sql.Rows, error)
}

// query makes a query of a statement.
func (r *readers) query(stmt *sql.Stmt, args ...any) query {
	return query{r.patience, func(ctx context.Context) (*sql.Rows, error) { return stmt.QueryContext(ctx, args...) }}
}

// queryText makes a query of a text.
func (r *readers) queryText(text string, args ...any) query {
	return query{r.patience, func(ctx context.Context) (*sql.Rows, error) { return r.db.QueryContext(ctx, text, args...) }}
}

// first scans the first row, without one it returns [sql.ErrNoRows].
func (q query) first(ctx context.Context, into ...any) error {
	_, err := readFirst(ctx, q, func(rows *sql.Rows) (struct{}, error) { return struct{}{}, rows.Scan(into...) })
	return err
}

// readFirst reads the first row of a query, without one it returns [sql.ErrNoRows].
func readFirst[T any](ctx context.Context, q query, scan func(*sql.Rows) (T, error)) (T, error) {
	return reread(ctx, q.patience, func(ctx context.Context, answered func()) (v T, err error) {
		rows, err := q.ask(ctx)
		answered()
		if err != nil {
			return v, err
		}
		defer rows.Close()
		if !rows.Next() {
			return v, cmp.Or(rows.Err(), sql.ErrNoRows)
		}
		if v, err = scan(rows); err != nil {
			return v, err
		}
		return v, rows.Close()
	})
}

// readRows reads all rows of a query.
func readRows[T any](ctx context.Context, q query, scan func(*sql.Rows) (T, error)) ([]T, error) {
	return reread(ctx, q.patience, func(ctx context.Context, answered func()) ([]T, error) {
		rows, err := q.ask(ctx)
		answered()
		return collect(rows, err, scan)
	})
}

// readRowsUntil reads rows as long as a scan wants them, which begins anew with each attempt.
func readRowsUntil[T any](ctx context.Context, q query, scan func() func(*sql.Rows) (v T, more bool, err error)) ([]T, error) {
	return reread(ctx, q.patience, func(ctx context.Context, answered func()) ([]T, error) {
		rows, err := q.ask(ctx)
		answered()
		return collectUntil(rows, err, scan())
	})
}

// reread reads, and again as long as the server is away and the patience lasts, if there is any.
// An attempt calls answered once the server has begun to answer: its length is not bounded
// from then on. Afterwards the error is [swarm.ErrUnavailable].
func reread[T any](ctx context.Context, patience time.Duration, read func(ctx context.Context, answered func()) (T, error)) (T, error) {
	if patience == 0 {
		return read(ctx, func() {})
	}
	end := time.Now().Add(patience)
	for pause := minRereadPause; ; pause = min(2*pause, maxRereadPause) {
		v, err := readOnce(ctx, time.Until(end), read)
		if err == nil || !postgres.IsAway(err) && !errors.Is(err, errNoAnswer) {
			return v, err
		}
		if ctx.Err() != nil {
			return v, errors.Join(context.Cause(ctx), err)
		}
		if !time.Now().Add(pause).Before(end) {
			return v, fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return v, errors.Join(context.Cause(ctx), err)
		}
	}
}

// readOnce reads once, and gives up what is not answered in time.
func readOnce[T any](ctx context.Context, patience time.Duration, read func(ctx context.Context, answered func()) (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(patience, func() { cancel(errNoAnswer) })
	defer timer.Stop()
	v, err := read(ctx, func() { timer.Stop() })
	if err != nil && errors.Is(context.Cause(ctx), errNoAnswer) {
		err = fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return v, err
}
