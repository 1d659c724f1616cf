package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Bounds of the write-ahead log: the engine copies it back into the database
// at checkpointPages, and truncates it to logBytes when it starts over.
const (
	checkpointPages = 4000
	logBytes        = 32 << 20
)

// spillPages is how many pages the cache may have in a transaction before some are written
// out, more than a group of groupBytes changes. A multiple of 256 turns that off: the pragma
// reads the number as a byte, too.
const spillPages = 5000

// busyMS is how long a connection waits for programs that are none of ours,
// for instance a backup that holds the file.
const busyMS = 5000

// writerPragmas hold the promise of the package: a commit is on the disk
// (synchronous=FULL), and readers and the writer never wait for each other.
var writerPragmas = []string{
	"synchronous = FULL",
	// Without it fsync leaves a commit in the disk's cache on macOS.
	// https://sqlite.org/pragma.html#pragma_fullfsync
	"fullfsync = ON",
	// What is deleted is overwritten at once. A page that is freed as it is may be
	// taken for a shorter text, whose page then keeps the rest of the old one, where
	// no erasure of a tenant finds it.
	"secure_delete = ON",
	fmt.Sprintf("wal_autocheckpoint = %d", checkpointPages),
	fmt.Sprintf("journal_size_limit = %d", logBytes),
	// A commit after a page was split looks at each place of the cache: balance_nonroot
	// lends a page the highest number that there is, see pcache1TruncateUnsafe in
	// https://www.sqlite.org/src/file?name=src/pcache1.c. So the cache is small, and a
	// group may have more pages in it before they are written out.
	"cache_size = -4096",
	fmt.Sprintf("cache_spill = %d", spillPages),
	"temp_store = MEMORY",
	"trusted_schema = OFF",
}

// dsn names the database to the driver, whatever its path holds.
func dsn(path string, query url.Values) string {
	query.Set("_dqs", "0")
	query.Set("_defensive", "1")
	query.Set("_error_rc", "1")
	query.Set("_busy_timeout", fmt.Sprint(busyMS))
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	return u.String()
}

// openConn opens the one connection that writes and sets it up, after it has
// made sure that the file is ours.
func openConn(ctx context.Context, path string) (*sql.DB, *sql.Conn, error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"_txlock": {"immediate"}}))
	if err != nil {
		return nil, nil, err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	if err := setUp(ctx, c); err != nil {
		return nil, nil, errors.Join(err, c.Close(), db.Close())
	}
	return db, c, nil
}

func setUp(ctx context.Context, c *sql.Conn) error {
	if _, err := identify(ctx, c); err != nil {
		return err
	}
	var mode string
	if err := c.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if !strings.EqualFold(mode, "wal") {
		return fmt.Errorf("this file system cannot share memory, as a write-ahead log needs (journal mode %s): choose a data directory on a local disk", mode)
	}
	for _, p := range writerPragmas {
		if _, err := c.ExecContext(ctx, "PRAGMA "+p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// preparer is what both a pool and a single connection can do.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepare fills statements from their texts.
func prepare(ctx context.Context, p preparer, texts map[**sql.Stmt]string) error {
	for stmt, text := range texts {
		s, err := p.PrepareContext(ctx, text)
		if err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
		*stmt = s
	}
	return nil
}

// connStatements are statements of one connection. Unlike those of a pool, database/sql
// does not close them with it (https://pkg.go.dev/database/sql#Conn.PrepareContext), and
// the engine keeps a connection open as long as it has one
// (https://www.sqlite.org/c3ref/close.html).
type connStatements struct {
	conn *sql.Conn
	open []*sql.Stmt
}

// PrepareContext prepares a statement that close closes.
func (c *connStatements) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	s, err := c.conn.PrepareContext(ctx, query)
	if err == nil {
		c.open = append(c.open, s)
	}
	return s, err
}

func (c *connStatements) close() error {
	var errs []error
	for _, s := range c.open {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// hasLog reports whether the last host left a log behind, as one that was
// killed does.
func hasLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
