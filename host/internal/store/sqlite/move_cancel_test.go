package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/postgres"
)

// breakOff is what is left of a move that ended when do was through, as by a power cut.
func breakOff(t *testing.T, from *sql.Conn, do func(move int64) error) error {
	t.Helper()
	err := moveAway(t.Context(), from, func(move int64) error { return errors.Join(do(move), errUncertain) })
	if errors.Is(err, errUncertain) {
		return nil
	}
	return err
}

// noCopy is a move that ends before its copy is there.
func noCopy(int64) error { return nil }

// TestCancelMoveToServer: a move to a server that was broken off is given up where its copy is not
// whole, and can begin anew; where it is, the move can only be completed.
func TestCancelMoveToServer(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), Server{DSN: pgtest.Schema(t)}
	s := openTest(t, dir)
	copiedSteps(t, s, 0, 1)
	want := exported(t, s)
	if err := CancelCopyToServer(t.Context(), dir, server); !errors.Is(err, ErrInUse) {
		t.Error("of a store in use:", err)
	}
	mustDo(t, s.Close())
	if err := CancelCopyToServer(t.Context(), dir, server); !errors.Is(err, ErrNotMoving) {
		t.Error("without a move:", err)
	}
	mustDo(t, withSourceDir(t.Context(), dir, func(_ string, from *sql.Conn) error { return breakOff(t, from, noCopy) }))
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrMoving) {
		t.Errorf("Open() of what may be moved = %v", err)
	}
	mustDo(t, CancelCopyToServer(t.Context(), dir, server))
	s = openTest(t, dir)
	if got := exported(t, s); got != want {
		t.Errorf("the directory has\n%s\nwant\n%s", got, want)
	}
	mustDo(t, s.Close())
	mustDo(t, withSourceDir(t.Context(), dir, func(path string, from *sql.Conn) error {
		return breakOff(t, from, func(move int64) error {
			return copyFile(t.Context(), path, server, nil, &copier{move: move})
		})
	}))
	if err := CancelCopyToServer(t.Context(), dir, server); !errors.Is(err, ErrArrived) {
		t.Error("of a copy that is whole:", err)
	}
	if _, err := CopyToServer(t.Context(), dir, server, CopyOptions{}); err != nil {
		t.Error("completing it:", err)
	}
	if err := CancelCopyToServer(t.Context(), dir, server); !errors.Is(err, ErrMoved) {
		t.Error("of a move that is complete:", err)
	}
	if got := exported(t, openTestServer(t, server.DSN)); got != want {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
}

// TestCancelMoveFromServer is [TestCancelMoveToServer] the other way.
func TestCancelMoveFromServer(t *testing.T) {
	t.Parallel()
	back, server := filepath.Join(t.TempDir(), "back"), Server{DSN: pgtest.Schema(t)}
	s := openTestServer(t, server.DSN)
	copiedSteps(t, s, 0, 1)
	want := exported(t, s)
	mustDo(t, s.Close())
	mustDo(t, withSourceServer(t.Context(), server, func(w *writer, _ *sql.DB, _ *postgres.Connector) error {
		return breakOff(t, w.conn, noCopy)
	}))
	if _, err := OpenServer(t.Context(), server, Options{}); !errors.Is(err, ErrMoving) {
		t.Errorf("OpenServer() of what may be moved = %v", err)
	}
	mustDo(t, CancelCopyFromServer(t.Context(), server, back))
	s = openTestServer(t, server.DSN)
	if got := exported(t, s); got != want {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
	mustDo(t, s.Close())
	mustDo(t, withSourceServer(t.Context(), server, func(w *writer, readers *sql.DB, _ *postgres.Connector) error {
		return breakOff(t, w.conn, func(move int64) error {
			return w.empty(t.Context(), readers, back, nil, &copier{move: move})
		})
	}))
	if err := CancelCopyFromServer(t.Context(), server, back); !errors.Is(err, ErrArrived) {
		t.Error("of a copy that is whole:", err)
	}
	if _, err := CopyFromServer(t.Context(), server, back, CopyOptions{}); err != nil {
		t.Error("completing it:", err)
	}
	if got := exported(t, openTest(t, back)); got != want {
		t.Errorf("the directory has\n%s\nwant\n%s", got, want)
	}
}
