package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// database is what a writer needs beside statements.
type database interface {
	// beginGroup begins a transaction, unless another host has taken the database over.
	beginGroup(ctx context.Context) error
	// commitGroup makes a group durable. After errRepeat the group is not there.
	commitGroup(ctx context.Context) error
	// rollbackGroup undoes a group that has failed with cause, and returns what the cause means.
	rollbackGroup(ctx context.Context, cause error) error
	// answersLate reports whether an answer costs a round trip.
	answersLate() bool
	// afterGroup is called when the callers of a group have their answers.
	afterGroup(ctx context.Context)
	// overwriteDeleted writes the last change of an erasure, and leaves nothing in the
	// database of what the erasure has deleted, as far as the engine can.
	overwriteDeleted(ctx context.Context, s *Store, last change) error
	// copyTo copies everything, as it is at one moment, into an empty file as a database of
	// the embedded engine.
	copyTo(ctx context.Context, s *Store, path string) error
	// closing is called when the last groups are written, from another goroutine.
	closing()
	close(ctx context.Context) error
}

// errRepeat: a group is known not to be there, and can be applied again.
var errRepeat = errors.New("the group was not written")

// fileEngine is the embedded engine.
type fileEngine struct {
	w   *writer
	wal *wal

	begin, commit, rollback, fence *sql.Stmt
}

func openFileEngine(ctx context.Context, w *writer, path string) (*fileEngine, error) {
	f := &fileEngine{w: w, wal: &wal{path: path + "-wal"}}
	return f, prepare(ctx, &w.stmts, map[**sql.Stmt]string{
		&f.begin:    "BEGIN IMMEDIATE",
		&f.commit:   "COMMIT",
		&f.rollback: "ROLLBACK",
		&f.fence:    "SELECT value FROM meta WHERE name = 'epoch'",
	})
}

func (f *fileEngine) beginGroup(ctx context.Context) error {
	if _, err := f.begin.ExecContext(ctx); err != nil {
		return err
	}
	if err := f.checkEpoch(ctx); err != nil {
		return f.rollbackGroup(ctx, err)
	}
	return nil
}

// checkEpoch refuses to write into a file that another host has taken over.
func (f *fileEngine) checkEpoch(ctx context.Context) error {
	var epoch int64
	if err := f.fence.QueryRowContext(ctx).Scan(&epoch); err != nil {
		return err
	}
	if epoch != f.w.epoch {
		return fmt.Errorf("%w: its epoch is %d, ours %d", swarm.ErrFenced, epoch, f.w.epoch)
	}
	return nil
}

func (f *fileEngine) commitGroup(ctx context.Context) error {
	_, err := f.commit.ExecContext(ctx)
	return err
}

func (f *fileEngine) rollbackGroup(ctx context.Context, cause error) error {
	// The engine may have rolled back by itself: then this fails, and says nothing new.
	_, _ = f.rollback.ExecContext(ctx)
	return cause
}

func (f *fileEngine) answersLate() bool { return false }

func (f *fileEngine) afterGroup(ctx context.Context) { f.wal.trim(ctx, f.w.conn) }

// overwriteDeleted empties the log as well, which still has the pages as they were.
func (f *fileEngine) overwriteDeleted(ctx context.Context, s *Store, last change) error {
	if err := s.overwriteFreePages(ctx); err != nil {
		return err
	}
	if err := f.w.submit(ctx, last); err != nil {
		return err
	}
	f.wal.empty.Store(true)
	for range 2 { // what is done with a log follows the answer
		if err := f.w.submit(ctx, &flush{}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fileEngine) copyTo(ctx context.Context, s *Store, path string) error {
	return vacuumInto(ctx, s.path, path)
}

func (f *fileEngine) closing() {}

// close leaves a database without a log: the next open would make the last checkpoint.
func (f *fileEngine) close(ctx context.Context) error {
	_, err := f.w.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}
