package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// change is something to write.
type change interface {
	// bytes is about what the change adds to the log.
	bytes() int
	// apply writes the change and returns how many steps it made, 0 when it
	// turned out to change nothing. It is called again when its group has to
	// be repeated, and a failed call leaves nothing behind.
	apply(ctx context.Context, t *tables) (steps int, err error)
}

// tenantChange is a change that is made for a tenant.
type tenantChange interface{ tenantName() string }

func (e *encodedMutation) tenantName() string { return e.key.Tenant }

func (j *journalWrite) tenantName() string { return j.key.Tenant }

// writer is the only goroutine that changes the database.
type writer struct {
	db       *sql.DB
	conn     *sql.Conn
	stmts    connStatements
	tables   *tables
	database database
	epoch    int64
	secret   []byte
	stopped  sync.WaitGroup

	steps, groups atomic.Int64

	save, undo, release *sql.Stmt

	queue *queue
	now   func() time.Time
	// synced is how long the last commit took.
	synced  time.Duration
	onGroup func(changes int, took time.Duration) // may be nil
}

func openWriter(ctx context.Context, path string, opts Options) (_ *writer, err error) {
	w := &writer{queue: newQueue(opts.Weight), now: opts.Now, onGroup: opts.OnGroup}
	if w.db, w.conn, err = openConn(ctx, path); err != nil {
		return nil, err
	}
	w.stmts.conn = w.conn
	if err := w.prepareFile(ctx, path); err != nil {
		return nil, errors.Join(err, w.closeConn())
	}
	return w, nil
}

// prepareFile makes the file ready and takes it over from its last host.
func (w *writer) prepareFile(ctx context.Context, path string) (err error) {
	if err := migrate(ctx, w.conn, migrations, w.now()); err != nil {
		return err
	}
	if err := checkMoved(ctx, w.conn); err != nil {
		return err
	}
	if w.epoch, w.secret, err = takeOver(ctx, w.conn); err != nil {
		return err
	}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	if err := prepare(ctx, &w.stmts, w.tables.blank.texts()); err != nil {
		return err
	}
	w.database, err = openFileEngine(ctx, w, path)
	return err
}

// prepare prepares what all engines have.
func (w *writer) prepare(ctx context.Context) (err error) {
	if w.tables, err = prepareTables(ctx, w.conn, &w.stmts); err != nil {
		return err
	}
	return prepare(ctx, &w.stmts, map[**sql.Stmt]string{
		&w.save:    "SAVEPOINT change",
		&w.undo:    "ROLLBACK TO change",
		&w.release: "RELEASE change",
	})
}

// Both find only what the store itself has written.
const (
	raiseEpoch = "UPDATE meta SET value = value + 1 WHERE name = 'epoch' AND typeof(value) = 'integer' AND value < ? RETURNING value"
	findSecret = "SELECT value FROM meta WHERE name = 'secret' AND typeof(value) = 'blob' AND length(value) = 32"
)

func metaError(name string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("the database is damaged, it has no %s that can be used: restore the data directory from a backup", name)
	}
	return err
}

// takeOver raises the epoch, which fences every host that had the file before,
// and returns it with the store's secret, made the first time.
func takeOver(ctx context.Context, c *sql.Conn) (epoch int64, secret []byte, err error) {
	fresh := make([]byte, 32)
	if _, err := rand.Read(fresh); err != nil {
		return 0, nil, err
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return 0, nil, err
	}
	defer tx.Rollback() // after Commit this does nothing
	if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO meta VALUES ('secret', ?), ('epoch', 0)", fresh); err != nil {
		return 0, nil, err
	}
	err = tx.QueryRowContext(ctx, raiseEpoch, int64(math.MaxInt64)).Scan(&epoch)
	if err != nil {
		return 0, nil, metaError("epoch", err)
	}
	if err := tx.QueryRowContext(ctx, findSecret).Scan(&secret); err != nil {
		return 0, nil, metaError("secret", err)
	}
	return epoch, secret, tx.Commit()
}

func (w *writer) start(ctx context.Context) {
	w.stopped.Go(func() {
		for first, ok := w.queue.nextJob(); ok; first, ok = w.queue.nextJob() {
			w.writeGroup(ctx, first)
		}
	})
}

// close writes what is in the queue and stops the writer.
func (w *writer) close() error {
	w.queue.close()
	w.database.closing()
	w.stopped.Wait()
	return errors.Join(w.database.close(context.Background()), w.closeConn())
}

// closeConn ends the connection.
func (w *writer) closeConn() error {
	return errors.Join(w.stmts.close(), w.conn.Close(), w.db.Close())
}

// submit hands a change over and waits until it is durable or refused. Only until
// it is handed over does the end of ctx count: afterwards the true outcome is
// on its way, and a caller that left without it would not know it.
func (w *writer) submit(ctx context.Context, c change) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	j := job{change: c, done: make(chan error, 1)}
	if c, ok := c.(tenantChange); ok {
		j.tenant = c.tenantName()
	}
	if err := w.queue.putJob(ctx, j); err != nil {
		return err
	}
	return <-j.done
}
