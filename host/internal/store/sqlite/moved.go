package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrMoved: the store was moved to another place, and no host opens it here.
var ErrMoved = errors.New("it was moved with `skep migrate`")

// ErrMoving: a move of the store was broken off, and its copy may be whole.
var ErrMoving = errors.New("its move with `skep migrate` was broken off: run the same command again, which completes it, or with --cancel, which gives it up")

// errUncertain: it is not known whether a copy is there.
var errUncertain = errors.New("it is not known whether the copy is there, run the same command again")

// querier is a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// markOf returns a mark of a move, 0 for none: when the store was "moved", or the number of the
// move with which it is "moving" or has "arrived".
func markOf(ctx context.Context, q querier, name string) (value int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return value, err
}

// checkMoved is [ErrMoved] for a store that was moved away, and [ErrMoving] for one that may be.
func checkMoved(ctx context.Context, q querier) error {
	if at, err := markOf(ctx, q, "moved"); err != nil {
		return err
	} else if at != 0 {
		return fmt.Errorf("%w at %s: name the place where it is in [store] of swarm.toml", ErrMoved, time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	move, err := markOf(ctx, q, "moving")
	if err == nil && move != 0 {
		err = ErrMoving
	}
	return err
}

// moveAway moves the store of a connection: do copies it, with the number of the move. No host
// opens the store from before the copy is there, so that two places are never in use. When do
// fails hosts open it again, unless it is errUncertain.
func moveAway(ctx context.Context, from *sql.Conn, do func(move int64) error) error {
	var fresh [8]byte
	_, _ = rand.Read(fresh[:]) // never fails
	r, err := from.ExecContext(ctx, "INSERT INTO meta VALUES ('moving', ?) ON CONFLICT (name) DO NOTHING", int64(binary.BigEndian.Uint64(fresh[:])>>1|1))
	if err != nil {
		return err
	}
	first, err := r.RowsAffected()
	if err != nil {
		return err
	}
	move, err := markOf(ctx, from, "moving")
	if err != nil {
		return err
	}
	if err := do(move); err != nil {
		if first != 0 && !errors.Is(err, errUncertain) {
			_, undo := from.ExecContext(context.WithoutCancel(ctx), "DELETE FROM meta WHERE name = 'moving'")
			err = errors.Join(err, undo)
		}
		return err
	}
	_, err = from.ExecContext(ctx, "INSERT INTO meta VALUES ('moved', ?)", time.Now().Unix())
	if err != nil {
		err = fmt.Errorf("the copy is whole, run the same command again to complete the move: %w", err)
	}
	return err
}
