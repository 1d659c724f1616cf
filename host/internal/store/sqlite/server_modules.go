package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"skep/host/internal/pathcheck"
	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

// MaxServerModule is the size of the largest module that is kept on a server, in bytes.
const MaxServerModule = maxBody - 1

// ErrLaterModule is the error of a module that a later version has kept: it is not damaged.
var ErrLaterModule = errors.New("a later version of skep has kept it; update this host")

// ServerModules are the copies of modules on a server, for hosts whose data directory lacks one. They are not sealed,
// as the operator's definitions are not. Reads wait for a server that is away as all reads do, and writes as long.
type ServerModules struct {
	readers *readers
	// db writes, nil for a reader. Each connection lasts for one write: megabytes hold up neither groups nor keys,
	// and none is found broken after hours.
	db  *sql.DB
	hid int64
}

// ServerModule is a copy of a module on a server.
type ServerModule struct {
	Digest string
	// Old is set if no host has touched it for the age that was asked for.
	Old bool
	// at is when a host last did, in milliseconds since 1970 by the server's clock.
	at int64
}

func newServerModules(c *postgres.Connector, r *readers, hid int64) *ServerModules {
	db := sql.OpenDB(c.Durable())
	db.SetMaxOpenConns(2) // one for megabytes, so that a reload need not wait for them
	db.SetMaxIdleConns(-1)
	return &ServerModules{readers: r, db: db, hid: hid}
}

// OpenServerModules opens the copies of modules on a server whose tables are there. The caller closes them.
func OpenServerModules(ctx context.Context, at Server) (*ServerModules, error) {
	connector, err := at.connector()
	if err != nil {
		return nil, err
	}
	r, err := openServerReaders(ctx, connector)
	if err != nil {
		return nil, addAdvice(meaning(err))
	}
	return newServerModules(connector, r, 0), nil
}

// Close closes what [OpenServerModules] has opened.
func (m *ServerModules) Close() error { return errors.Join(m.db.Close(), m.readers.close()) }

// ServerModules returns the copies of modules on the store's server, nil for a store in a file.
func (s *Store) ServerModules() *ServerModules { return s.modules }

// ServerModules is [Store.ServerModules], which only reads.
func (r *Reader) ServerModules() *ServerModules { return r.store.modules }

// The statements of the table modules. Hosts touch rows in one order, so that none waits for another in a circle.
const (
	serverMillis = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
	touchModules = `WITH held AS (SELECT digest FROM modules
			WHERE digest IN (SELECT decode(unnest(string_to_array(?, ' ')), 'hex')) ORDER BY digest FOR UPDATE)
		UPDATE modules m SET at = ` + serverMillis + ` FROM held WHERE m.digest = held.digest RETURNING m.digest`
	addModule = "INSERT INTO modules (digest, at, size, body) VALUES (?, " + serverMillis + `, ?, ?)
		ON CONFLICT (digest) DO UPDATE SET at = excluded.at`
	listModules = "SELECT digest, at, at < " + serverMillis + " - ? FROM modules ORDER BY digest"
	readModule  = `SELECT greatest(size, length(body) - 1), CASE WHEN greatest(size, length(body) - 1) <= ? THEN body END
		FROM modules WHERE digest = ?`
	// A host that was fenced decides by names that may be old.
	isAliveHost       = " AND EXISTS (SELECT 1 FROM hosts WHERE hid = ? AND NOT dead)"
	dropModule        = "DELETE FROM modules WHERE digest = ? AND at = ?" + isAliveHost
	dropDamagedModule = "DELETE FROM modules WHERE digest = ? AND sha256(body) = ?" + isAliveHost
)

// TouchModules makes the copies of modules young, and returns the digests of those that are there.
func (m *ServerModules) TouchModules(ctx context.Context, digests []string) (there map[string]bool, err error) {
	there = map[string]bool{}
	err = m.change(ctx, 0, func(ctx context.Context) error {
		clear(there)
		rows, err := m.db.QueryContext(ctx, touchModules, strings.Join(digests, " "))
		_, err = collect(rows, err, func(rows *sql.Rows) (name []byte, err error) {
			err = rows.Scan(&name)
			there[hex.EncodeToString(name)] = true
			return name, err
		})
		return err
	})
	if err != nil {
		err = fmt.Errorf("touch %d modules on the server: %w", len(digests), err)
	}
	return there, err
}

// AddModule makes a copy of a module, which is durable on return. After an error it may be there.
func (m *ServerModules) AddModule(ctx context.Context, digest string, data []byte) error {
	name, err := hex.DecodeString(digest)
	if err == nil && len(data) > MaxServerModule {
		err = &pathcheck.SizeError{Path: "module " + digest, Size: int64(len(data)), Max: MaxServerModule}
	}
	if err == nil {
		body := packModule(data)
		err = m.change(ctx, len(body), func(ctx context.Context) error {
			_, err := m.db.ExecContext(ctx, addModule, name, int64(len(data)), body)
			return err
		})
	}
	if err != nil {
		err = fmt.Errorf("keep module %s on the server: %w", digest, err)
	}
	return err
}

// packModule makes the body of a module, with one copy of it at a time.
func packModule(data []byte) []byte {
	body := make([]byte, 1+s2.MaxEncodedLen(len(data)))
	body[0] = codecPacked
	if body = body[:1+len(s2.Encode(body[1:], data))]; len(body) <= len(data) {
		return body
	}
	return append([]byte{codecPlain}, data...)
}

// ReadModule reads a module of at most maxSize bytes; a larger one is a [*pathcheck.SizeError]. A missing one is
// [fs.ErrNotExist], and one whose bytes are not its digest's [IsDamaged]: a host drops it, so that the next one that
// has its file makes it anew.
func (m *ServerModules) ReadModule(ctx context.Context, digest string, maxSize int64) ([]byte, error) {
	what := fmt.Sprintf("module %s on the server", digest)
	name, err := hex.DecodeString(digest)
	if err != nil {
		return nil, err
	}
	var size int64
	var body []byte
	q := m.readers.queryText(readModule, maxSize, name)
	q.patience = m.limit(min(maxSize, MaxServerModule))
	err = q.first(ctx, &size, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("%s: %w", what, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", what, addAdvice(err))
	case body == nil:
		return nil, &pathcheck.SizeError{Path: what, Size: size, Max: maxSize}
	}
	if n := int64(contentSize(body)); n > maxSize {
		return nil, &pathcheck.SizeError{Path: what, Size: n, Max: maxSize}
	}
	data, err := unwrap(body)
	if errors.Is(err, errCodec) {
		return nil, fmt.Errorf("read %s: %w: its codec is 0x%02x", what, ErrLaterModule, body[0])
	}
	if sum := sha256.Sum256(data); err == nil && hex.EncodeToString(sum[:]) != digest {
		err = fmt.Errorf("%w: its digest is not its key", errBody)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, errors.Join(err, m.dropDamaged(ctx, name, body)))
	}
	return data, nil
}

// dropDamaged drops a copy that has exactly the damaged body.
func (m *ServerModules) dropDamaged(ctx context.Context, name, body []byte) error {
	if m.db == nil {
		return nil
	}
	sum := sha256.Sum256(body)
	_, err := m.changes(ctx, dropDamagedModule, name, sum[:], m.hid)
	return err
}

// ListModules lists the copies, without their bytes.
func (m *ServerModules) ListModules(ctx context.Context, age time.Duration) ([]ServerModule, error) {
	list, err := readRows(ctx, m.readers.queryText(listModules, age.Milliseconds()), func(rows *sql.Rows) (one ServerModule, err error) {
		var name []byte
		err = rows.Scan(&name, &one.at, &one.Old)
		one.Digest = hex.EncodeToString(name)
		return one, err
	})
	if err != nil {
		err = fmt.Errorf("list the modules on the server: %w", addAdvice(err))
	}
	return list, err
}

// DropModule drops a copy as it was listed, and reports whether it was there: a host may have touched it meanwhile, or
// another one has dropped it.
func (m *ServerModules) DropModule(ctx context.Context, one ServerModule) (bool, error) {
	name, err := hex.DecodeString(one.Digest)
	if err != nil {
		return false, err
	}
	dropped, err := m.changes(ctx, dropModule, name, one.at, m.hid)
	if err != nil {
		err = fmt.Errorf("drop module %s on the server: %w", one.Digest, err)
	}
	return dropped, err
}

// changes reports whether a statement has changed a row.
func (m *ServerModules) changes(ctx context.Context, text string, args ...any) (changed bool, err error) {
	err = m.change(ctx, 0, func(ctx context.Context) error {
		r, err := m.db.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		changed = n > 0
		return err
	})
	return changed, err
}

// slowestTransfer is how long a mebibyte of a module may take on its way to or from the server.
const slowestTransfer = time.Second

// limit is how long it may take to move some bytes of a module.
func (m *ServerModules) limit(bytes int64) time.Duration {
	return m.readers.patience + time.Duration(bytes>>20)*slowestTransfer
}

// change writes, again as long as the server is away and the patience of the readers lasts. Afterwards the error is
// [swarm.ErrUnavailable]. A write of some bytes has longer. do may be repeated.
func (m *ServerModules) change(ctx context.Context, bytes int, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.limit(int64(bytes)), errNoAnswer)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil || ctx.Err() == nil && !postgres.IsAway(err) && !postgres.IsReadOnly(err) {
			return addAdvice(err)
		}
		select {
		case <-time.After(maxRereadPause):
		case <-ctx.Done():
		}
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errNoAnswer):
			return fmt.Errorf("%w: %w", swarm.ErrUnavailable, err)
		case cause != nil:
			return errors.Join(cause, err)
		}
	}
}
