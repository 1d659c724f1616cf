package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skep/host/internal/store/postgres"
)

var (
	// ErrNotMoving: no move of the store was broken off.
	ErrNotMoving = errors.New("no move of it was broken off")
	// ErrArrived: the copy of a move that was broken off is whole.
	ErrArrived = errors.New("the copy is whole: run the command without --cancel, which completes the move")
)

// CancelCopyToServer gives up a [CopyToServer] that was broken off: hosts open the directory again.
// It fails if the server has the copy, which another host may have opened since.
func CancelCopyToServer(ctx context.Context, dir string, at Server) error {
	err := withSourceDir(ctx, dir, func(_ string, conn *sql.Conn) error {
		return cancelMove(ctx, conn, func(move int64) (bool, error) { return hasServerArrived(ctx, at, move) })
	})
	if err != nil {
		return fmt.Errorf("give up the move of the store %s: %w", dir, addAdvice(err))
	}
	return nil
}

// CancelCopyFromServer gives up a [CopyFromServer] that was broken off.
func CancelCopyFromServer(ctx context.Context, at Server, dir string) error {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = withSourceServer(ctx, at, func(w *writer, _ *sql.DB, _ *postgres.Connector) error {
			return cancelMove(ctx, w.conn, func(move int64) (bool, error) { return hasArrived(ctx, dir, move) })
		})
	}
	if err != nil {
		return fmt.Errorf("give up the move of the store of a server: %w", addAdvice(err))
	}
	return nil
}

// cancelMove lets hosts open the store of a connection again, unless its copy has arrived.
func cancelMove(ctx context.Context, from *sql.Conn, hasArrived func(move int64) (bool, error)) error {
	move, err := markOf(ctx, from, "moving")
	if err != nil {
		return err
	}
	if move == 0 {
		return ErrNotMoving
	}
	switch arrived, err := hasArrived(move); {
	case err != nil:
		return err
	case arrived:
		return ErrArrived
	}
	_, err = from.ExecContext(ctx, "DELETE FROM meta WHERE name = 'moving'")
	return err
}

// hasServerArrived reports whether a server has what came with a move. It opens it to write: a COMMIT
// of the move that is still under way holds the writer's lock.
func hasServerArrived(ctx context.Context, at Server, move int64) (yes bool, err error) {
	connector, err := at.connector()
	if err != nil {
		return false, err
	}
	w, err := openServerWriter(ctx, connector, Options{Now: time.Now})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.closeConn()) }()
	arrived, err := markOf(ctx, w.conn, "arrived")
	return arrived == move, err
}
