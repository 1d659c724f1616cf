package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrMoved: the store was moved to another place, and no host opens it here.
var ErrMoved = errors.New("it was moved with `skep migrate`")

// querier is a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkMoved is [ErrMoved] for a store that was moved away.
func checkMoved(ctx context.Context, q querier) error {
	var at int64
	err := q.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'moved'").Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w at %s: name the place where it is in [store] of swarm.toml", ErrMoved, time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	return err
}

// markMoved makes a store one that was moved.
func markMoved(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}) error {
	_, err := db.ExecContext(ctx, "INSERT INTO meta VALUES ('moved', ?)", time.Now().Unix())
	if err != nil {
		err = fmt.Errorf("the copy is whole, but its source is not marked as moved, remove it: %w", err)
	}
	return err
}
