package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

// serverReaders is how many connections to a server read at once.
const serverReaders = 8

// Server is a schema of a PostgreSQL server.
type Server struct {
	DSN string
	// Replicated refuses a server without a synchronous standby.
	Replicated bool
	// Shared leaves other hosts their writes, which have it too. The caller makes the host a
	// member of theirs.
	Shared bool
	// Dir is a data directory that is locked while the store is open, empty for none.
	Dir string
	// Logger is told when the server is away; it may be nil.
	Logger *slog.Logger
}

// connector makes connections to the server.
func (at Server) connector() (*postgres.Connector, error) {
	c, err := postgres.NewConnector(at.DSN, numberColumns)
	if err == nil {
		c.Replicated, c.Logger, c.Shared = at.Replicated, at.Logger, at.Shared
	}
	return c, err
}

// OpenServer opens the store on a server, and makes its tables the first time. Another host
// that has it open makes it fail, unless both share it. With a keyring in opts, which must have
// a KEK, its keys lie in a table. The caller closes the store.
func OpenServer(ctx context.Context, at Server, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	at.Logger = opts.Logger
	s, err := openServer(ctx, at, opts)
	if err != nil {
		return nil, fmt.Errorf("open the store on a server: %w", addAdvice(err))
	}
	return s, nil
}

func openServer(ctx context.Context, at Server, opts Options) (_ *Store, err error) {
	connector, err := at.connector()
	if err != nil {
		return nil, err
	}
	s := &Store{path: connector.Host(), erasing: map[string]bool{}, storage: opts.Storage, begun: opts.Begun, log: opts.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if at.Dir != "" {
		if s.lock, err = takeLock(filepath.Join(at.Dir, lockName)); err != nil {
			return nil, err
		}
	}
	if s.writer, err = openServerWriter(ctx, connector, opts); err != nil {
		return nil, err
	}
	if err := checkMoved(ctx, s.writer.conn); err != nil {
		return nil, err
	}
	s.keyring = newServerKeyring(connector, s.writer.epoch)
	if s.codec, err = openServerCodec(s.keyring, opts.Keyring); err != nil {
		return nil, err
	}
	s.codec.level = opts.Level
	s.secrets = newServerSecrets(s.keyring, opts.Keyring)
	if s.readers, err = openServerReaders(ctx, connector); err != nil {
		return nil, err
	}
	s.modules = newServerModules(connector, s.readers, s.writer.epoch)
	todo, err := s.checkKeys(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.report(ctx, opts.Logger, false); err != nil {
		return nil, err
	}
	s.close = sync.OnceValue(s.release)
	// From here on nothing but Close stops the writer.
	s.writer.start(context.WithoutCancel(ctx))
	if !at.Shared { // all hosts do together what was left undone
		s.resume(context.WithoutCancel(ctx), opts.Logger, todo)
	}
	return s, nil
}

func openServerReaders(ctx context.Context, c *postgres.Connector) (*readers, error) {
	db := sql.OpenDB(c.ReadOnly())
	db.SetMaxOpenConns(serverReaders)
	db.SetMaxIdleConns(serverReaders)
	r := &readers{db: db, patience: readerPatience}
	if err := prepare(ctx, db, r.texts()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

func openServerWriter(ctx context.Context, c *postgres.Connector, opts Options) (_ *writer, err error) {
	below, err := postgres.OpenWriter(ctx, c)
	if err != nil {
		return nil, meaning(err)
	}
	w := &writer{queue: newQueue(opts.Weight), now: opts.Now, onGroup: opts.OnGroup, db: below.DB(), epoch: below.HID()}
	w.database = &serverDatabase{w: w, below: below, ended: make(chan struct{})}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, w.db.Close())
	}
	w.stmts.conn = w.conn
	if err := w.prepareServer(ctx, c.Shared); err != nil {
		return nil, errors.Join(err, w.closeConn())
	}
	return w, nil
}

func (w *writer) prepareServer(ctx context.Context, shared bool) (err error) {
	if shared {
		err = w.migrateShared(ctx)
	} else {
		if err = migrateServer(ctx, w.conn, serverMigrations); err == nil {
			err = addToServer(ctx, w.conn, serverAdditions)
		}
	}
	if err != nil {
		return err
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	if _, err := w.conn.ExecContext(ctx, "INSERT INTO secrets VALUES ('store', ?) ON CONFLICT DO NOTHING", fresh); err != nil {
		return err
	}
	if err := w.conn.QueryRowContext(ctx, findServerSecret).Scan(&w.secret); err != nil {
		return metaError("secret", err)
	}
	if err := w.prepare(ctx); err != nil || !shared {
		return err
	}
	return w.tables.share(ctx, &w.stmts, w.epoch)
}

// migrateServer brings the schema to the version that steps lead to. Only the host that holds
// the writer's lock does it.
func migrateServer(ctx context.Context, c *sql.Conn, steps []string) error {
	const table = "CREATE TABLE IF NOT EXISTS versions (version BIGINT PRIMARY KEY, migrated TIMESTAMPTZ NOT NULL DEFAULT now())"
	if _, err := c.ExecContext(ctx, table); err != nil {
		return err
	}
	var version int
	if err := c.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM versions").Scan(&version); err != nil {
		return err
	}
	if err := tooNew(version, len(steps)); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		text := fmt.Sprintf("BEGIN; %s INSERT INTO versions (version) VALUES (%d); COMMIT", steps[version], version+1)
		if _, err := c.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("migrate to schema version %d: %w", version+1, err)
		}
	}
	return nil
}

// addToServer makes what is missing. Writes of other hosts wait while an index is made.
func addToServer(ctx context.Context, c *sql.Conn, all []serverAddition) error {
	for _, one := range all {
		there, err := one.isThere(ctx, c)
		if err == nil && !there {
			_, err = c.ExecContext(ctx, one.text)
		}
		if err != nil {
			return fmt.Errorf("make %s on the server: %w", one.name, err)
		}
	}
	return nil
}

func (a serverAddition) isThere(ctx context.Context, db rowQuerier) (there bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT to_regclass(?) IS NOT NULL", a.name).Scan(&there)
	return there, err
}

// serverDatabase is a PostgreSQL server. Only the writer's goroutine uses it, but for closing.
type serverDatabase struct {
	w     *writer
	below *postgres.Conn
	// since is when the group in hand began, in nanoseconds since 1970, 0 without one.
	since atomic.Int64
	// end is why no group succeeds any more, set before ended is closed.
	end   error
	ended chan struct{}
}

// meaning is [meaning] that notes the end.
func (d *serverDatabase) meaning(err error) error {
	err = meaning(err)
	if errors.Is(err, swarm.ErrFenced) && d.end == nil {
		d.end = err
		close(d.ended)
	}
	return err
}

// Ended is closed when no write can succeed any more, because another host has taken the server
// over or the server has lost what it had acknowledged. It is nil for a store in a file.
func (s *Store) Ended() <-chan struct{} {
	if d, isServer := s.writer.database.(*serverDatabase); isServer {
		return d.ended
	}
	return nil
}

// ErrLost is what [Store.End] has when the server does not have what it has acknowledged.
var ErrLost = postgres.ErrLost

// End is why the store has [Store.Ended], nil if it has not.
func (s *Store) End() error {
	select {
	case <-s.Ended():
		return s.writer.database.(*serverDatabase).end
	default:
		return nil
	}
}

func (d *serverDatabase) beginGroup(ctx context.Context) error {
	d.since.Store(time.Now().UnixNano())
	err := d.below.BeginGroup(ctx)
	if err != nil {
		d.since.Store(0)
	}
	return d.meaning(err)
}

func (d *serverDatabase) commitGroup(ctx context.Context) error {
	err := d.below.CommitGroup(ctx)
	d.since.Store(0)
	return d.meaning(err)
}

func (d *serverDatabase) rollbackGroup(ctx context.Context, cause error) error {
	err := d.below.RollbackGroup(ctx, cause)
	d.since.Store(0)
	return d.meaning(err)
}

// inUseError is [ErrInUse] of a server.
type inUseError struct{ error }

// Is makes it ErrInUse.
func (inUseError) Is(target error) bool { return target == ErrInUse }

// fencedError is [swarm.ErrFenced] of a server.
type fencedError struct{ error }

// Is makes it ErrFenced.
func (fencedError) Is(target error) bool { return target == swarm.ErrFenced }

func (e fencedError) Unwrap() error { return e.error }

// meaning gives an error of a connection the meaning that the port has for it.
func meaning(err error) error {
	switch {
	case errors.Is(err, postgres.ErrInUse):
		return inUseError{err}
	case errors.Is(err, postgres.ErrFenced), errors.Is(err, postgres.ErrLost):
		return fencedError{err}
	case errors.Is(err, postgres.ErrRepeat):
		return fmt.Errorf("%w: %w", errRepeat, err)
	case postgres.IsAway(err):
		return fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
	}
	return err
}

func (d *serverDatabase) answersLate() bool { return true }

func (d *serverDatabase) afterGroup(context.Context) {}

// overwriteDeleted leaves rows to the server's vacuum, and their copies in its log: their keys
// are destroyed.
func (d *serverDatabase) overwriteDeleted(ctx context.Context, _ *Store, last change) error {
	return d.w.submit(ctx, last)
}

func (d *serverDatabase) closing() { d.below.StopWaiting() }

// StopWaiting makes writes fail that wait for a server, now and later.
func (s *Store) StopWaiting() {
	if s.keyring != nil { // a write may wait for a key
		s.keyring.interrupt()
	}
	s.writer.database.closing()
}

func (d *serverDatabase) close(context.Context) error { return nil }

// InspectServer looks at a server and changes nothing there. See [postgres.Inspect].
func InspectServer(ctx context.Context, at Server) (postgres.Condition, error) {
	c, err := at.connector()
	if err != nil {
		return postgres.Condition{}, err
	}
	return postgres.Inspect(ctx, c)
}
