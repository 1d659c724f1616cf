package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"skep/host/internal/swarm"
)

// Reader reads the store of a data directory or a server that a host may be using, or none. It takes no
// lock and changes nothing. Its methods are safe for concurrent use.
type Reader struct {
	store  *Store
	secret []byte
	find   *sql.Stmt
	// keyringFile is the file of the keyring in a directory.
	keyringFile string
}

// OpenReader opens a data directory to read. One without a database is
// [fs.ErrNotExist]. Of opts only the keyring counts.
func OpenReader(ctx context.Context, dir string, opts Options) (*Reader, error) {
	r, err := openReader(ctx, dir, opts)
	if err != nil {
		return nil, fmt.Errorf("read store %s: %w", dir, addAdvice(err))
	}
	return r, nil
}

func openReader(ctx context.Context, dir string, opts Options) (_ *Reader, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	s := &Store{path: path, erasing: map[string]bool{}}
	if opts.Keyring != nil {
		ring := *opts.Keyring
		ring.ReadOnly = true
		opts.Keyring = &ring
	}
	if s.codec, err = openCodec(dir, opts.Keyring); err != nil {
		return nil, err
	}
	if err := checkReadable(ctx, path); err != nil {
		return nil, err
	}
	if s.readers, err = openReaders(ctx, path); err != nil {
		return nil, err
	}
	s.close = sync.OnceValue(s.readers.close)
	r := &Reader{store: s, keyringFile: filepath.Join(dir, keyringName)}
	if err := r.prepare(ctx, findSecret); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}

// checkReadable returns why a file must not be read with today's statements.
func checkReadable(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, map[string][]string{"mode": {"ro"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	version, err := identify(ctx, c)
	if err == nil && version < len(migrations) {
		err = fmt.Errorf("its schema is version %d and this skep reads version %d: start the host once, which brings it up to date", version, len(migrations))
	}
	return err
}

func (r *Reader) prepare(ctx context.Context, secret string) error {
	if err := r.store.readers.queryText(secret).first(ctx, &r.secret); err != nil {
		return metaError("secret", err)
	}
	return prepare(ctx, r.store.readers.db, map[**sql.Stmt]string{
		&r.find: `SELECT i.tenant, i.swarm, i.instance, t.task FROM instances i CROSS JOIN tasks t ON t.iid = i.iid
			WHERE t.task = ? ORDER BY i.iid LIMIT CAST(? AS BIGINT)`,
	})
}

// Close lets go of the directory.
func (r *Reader) Close() error { return r.store.Close() }

// Secret returns the store's secret.
func (r *Reader) Secret() []byte { return r.secret }

// Find returns the tasks of that id, which each instance chooses for itself; at
// most limit.
func (r *Reader) Find(ctx context.Context, task string, limit int) ([]swarm.TaskKey, error) {
	keys, err := readRows(ctx, r.store.readers.query(r.find, []byte(task), limit), func(rows *sql.Rows) (k swarm.TaskKey, err error) {
		var tenant, name, instance, id []byte
		err = rows.Scan(&tenant, &name, &instance, &id)
		k.Tenant, k.Swarm, k.Instance, k.Task = string(tenant), string(name), string(instance), string(id)
		return k, err
	})
	return keys, wrapError("find task", task, err)
}

// Load is [swarm.TaskLog.Load].
func (r *Reader) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	return r.store.Load(ctx, key)
}

// Record is [swarm.TurnJournal.Record].
func (r *Reader) Record(ctx context.Context, key swarm.TaskKey, turn int64) (swarm.Record, error) {
	return r.store.Record(ctx, key, turn)
}

// Records is [swarm.TurnJournal.Records].
func (r *Reader) Records(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Record, error) {
	return r.store.Records(ctx, key, after, limit)
}
