package sqlite

import (
	"errors"
	"fmt"

	engine "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"skep/host/internal/store/postgres"
)

// ErrClosed is what a closed store answers.
var ErrClosed = errors.New("store is closed")

// errForeign: the file is not one of ours.
var errForeign = errors.New("not a skep store")

// advice is what to do about engine errors that an operator can meet.
var advice = map[int]string{
	sqlite3.SQLITE_BUSY:       "another program holds the database locked: close it",
	sqlite3.SQLITE_CANTOPEN:   "the database or its -wal and -shm files cannot be opened: check who owns them",
	sqlite3.SQLITE_CONSTRAINT: "a number in this step is taken already, nothing was written",
	sqlite3.SQLITE_CORRUPT:    "the database is damaged: stop the host and restore the data directory from a backup",
	sqlite3.SQLITE_FULL:       "the disk is full: free some space on it",
	sqlite3.SQLITE_IOERR:      "the disk failed: check the system log",
	sqlite3.SQLITE_NOTADB:     "the file is damaged or no database: restore it from a backup, or choose another data directory",
	sqlite3.SQLITE_READONLY:   "the database or its directory is read-only: check who owns them",
}

// addAdvice puts advice before an engine error and leaves others as they are.
func addAdvice(err error) error {
	if text, ok := advice[code(err)]; ok {
		return fmt.Errorf("%s: %w", text, err)
	}
	return err
}

// code returns the primary result code of an engine error, 0 for others.
func code(err error) int {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isOwnFault reports whether an error is the fault of the step that met it, so
// that the others of its group can go on without it.
func isOwnFault(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return errors.Is(err, errRange) || errors.Is(err, errRefused) || postgres.IsOwnFault(err)
}

// errRefused marks what the writer refuses because of the step itself.
var errRefused = errors.New("nothing was written")

func refuse(err error) error { return fmt.Errorf("%w: %w", err, errRefused) }
