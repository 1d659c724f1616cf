package sqlite

import (
	"context"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// Check reads the whole database and returns the first thing that is damaged in it, empty
// for nothing. What is on a server the server checks itself
// (https://www.sqlite.org/pragma.html#pragma_integrity_check).
func (r *Reader) Check(ctx context.Context) (damaged string, err error) {
	if r.keyringFile == "" {
		return "", nil
	}
	err = r.store.readers.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&damaged)
	if err != nil {
		return "", fmt.Errorf("check the database: %w", addAdvice(err))
	}
	if damaged == "ok" {
		return "", nil
	}
	return damaged, nil
}

// IsDamage reports whether an error means that the bytes of the database are damaged.
func IsDamage(err error) bool {
	return code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB
}
