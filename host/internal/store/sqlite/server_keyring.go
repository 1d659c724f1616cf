package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/postgres"
	"skep/host/internal/swarm"
)

// serverKeyring is the table of a server's keyring. It has a connection of its own: groups wait
// for keys.
type serverKeyring struct {
	db *sql.DB
	// hid is the host that changes it, 0 for a reader.
	hid int64
	// text is what the table has, as far as is known.
	text []byte
	// stop ends waiting for a server that is away.
	stop   context.Context
	cancel context.CancelFunc
}

func newServerKeyring(c *postgres.Connector, hid int64) *serverKeyring {
	k := &serverKeyring{db: sql.OpenDB(c.Durable()), hid: hid}
	k.db.SetMaxOpenConns(1)
	k.stop, k.cancel = context.WithCancel(context.Background())
	return k
}

var _ keyring.Table = (*serverKeyring)(nil)

// Name implements [keyring.Table].
func (*serverKeyring) Name() string { return "in the table keyring" }

// Load implements [keyring.Table].
func (k *serverKeyring) Load() ([]byte, error) {
	rows, err := k.db.QueryContext(k.stop, "SELECT line FROM keyring ORDER BY n")
	lines, err := collect(rows, err, func(rows *sql.Rows) (line []byte, err error) { return line, rows.Scan(&line) })
	if err == nil && len(lines) == 0 {
		err = fs.ErrNotExist
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		k.text = bytes.Join(lines, nil)
	}
	return bytes.Clone(k.text), err
}

// Append implements [keyring.Table].
func (k *serverKeyring) Append(line []byte) error {
	err := k.change(func(tx *sql.Tx) error {
		digest, err := k.lockText(tx, line)
		if err == nil && !isDigestOf(digest, k.text) {
			err = keyring.ErrStale
		}
		if err != nil {
			return err
		}
		return k.put(tx, int64(len(keyring.Lines(k.text))), line)
	})
	if err == nil {
		k.text = append(k.text, line...)
	}
	return err
}

// lockText keeps other hosts from changing the table until the end, and returns the digest of its
// text without a line that an earlier try may have written. What others have replaced may have as
// many lines as before.
func (k *serverKeyring) lockText(tx *sql.Tx, tried []byte) (digest []byte, err error) {
	if _, err := tx.ExecContext(k.stop, "LOCK TABLE keyring IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return nil, err
	}
	const text = "SELECT sha256(coalesce(string_agg(line, '' ORDER BY n), '')) FROM keyring WHERE line <> ?"
	err = tx.QueryRowContext(k.stop, text, tried).Scan(&digest)
	return digest, err
}

func isDigestOf(digest, text []byte) bool {
	sum := sha256.Sum256(text)
	return bytes.Equal(digest, sum[:])
}

// Replace implements [keyring.Table]. Of the rows that it deletes the server's vacuum leaves
// nothing in the table.
func (k *serverKeyring) Replace(text []byte) error {
	lines := keyring.Lines(text)
	err := k.change(func(tx *sql.Tx) error {
		digest, err := k.lockText(tx, []byte{})
		switch {
		case err != nil:
			return err
		case isDigestOf(digest, text): // an earlier try has written it
			return nil
		case !isDigestOf(digest, k.text):
			return keyring.ErrStale
		}
		if _, err := tx.ExecContext(k.stop, "DELETE FROM keyring"); err != nil {
			return err
		}
		for n, line := range lines {
			if err := k.put(tx, int64(n), line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.text = bytes.Clone(text)
	_, _ = k.db.ExecContext(k.stop, "VACUUM keyring") // without it the autovacuum does, later
	return nil
}

// put writes a line. A change that is repeated finds the one that it wrote before.
func (k *serverKeyring) put(tx *sql.Tx, n int64, line []byte) error {
	_, err := tx.ExecContext(k.stop, "INSERT INTO keyring VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET line = excluded.line", n, line)
	return err
}

// keyringPause is between attempts to reach a server that is away.
const keyringPause = 100 * time.Millisecond

// change writes in a transaction, again until the server is there or the store closes.
func (k *serverKeyring) change(do func(*sql.Tx) error) error {
	for {
		err := k.try(do)
		switch {
		case err == nil, errors.Is(err, swarm.ErrFenced), errors.Is(err, keyring.ErrStale):
			return err
		case k.stop.Err() != nil: // whatever its end made of the statement
			return fmt.Errorf("%w: the host stops and waits no longer for its keyring: %v", swarm.ErrUnavailable, err) // the caller's context has not ended
		case !postgres.IsAway(err):
			return err
		}
		select {
		case <-time.After(keyringPause):
		case <-k.stop.Done():
		}
	}
}

func (k *serverKeyring) try(do func(*sql.Tx) error) error {
	tx, err := k.db.BeginTx(k.stop, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit this does nothing
	// A host that is fenced must not write over the keys of the next one. The lock keeps
	// others from fencing it until the end.
	var dead bool
	if err := tx.QueryRowContext(k.stop, "SELECT dead FROM hosts WHERE hid = ? FOR SHARE", k.hid).Scan(&dead); err != nil {
		return err
	}
	if dead {
		return meaning(postgres.ErrFenced)
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// interrupt makes a change fail that waits for the server.
func (k *serverKeyring) interrupt() { k.cancel() }

func (k *serverKeyring) close() error {
	k.cancel()
	return k.db.Close()
}

// openServerCodec opens the keyring of a server, none without opts.
func openServerCodec(table *serverKeyring, opts *keyring.Options) (*codec, error) {
	if opts == nil {
		return &codec{}, nil
	}
	ring, err := keyring.OpenTable(table, *opts)
	if err != nil {
		return nil, err
	}
	return &codec{ring: ring}, nil
}

// RewrapServer is [Rewrap] of the keyring of a server that no host uses. Its keys are never
// left plain.
func RewrapServer(ctx context.Context, at Server, from, to []byte) (n int, changed bool, err error) {
	if err := CheckServer(ctx, at); err != nil {
		return 0, false, addAdvice(err)
	}
	connector, err := at.connector()
	if err != nil {
		return 0, false, err
	}
	w, err := openServerWriter(ctx, connector, Options{Now: time.Now})
	if err != nil {
		return 0, false, addAdvice(err)
	}
	defer func() { err = errors.Join(err, w.closeConn()) }()
	if err := checkMoved(ctx, w.conn); err != nil {
		return 0, false, err
	}
	table := newServerKeyring(connector, w.epoch)
	defer func() { err = errors.Join(err, table.close()) }()
	// The keyring comes last: it tells whether all is wrapped anew.
	secrets, err := rewrapSecrets(ctx, w.conn, from, to)
	if err != nil {
		return 0, false, err
	}
	if r, err := keyring.OpenTable(table, keyring.Options{KEK: to, ReadOnly: true}); err == nil && r.Exists() {
		return len(r.Entries()), secrets > 0, nil
	}
	ring, err := keyring.OpenTable(table, keyring.Options{KEK: from})
	switch {
	case err != nil:
		return 0, false, err
	case !ring.Exists() && secrets > 0:
		return 0, true, nil
	case !ring.Exists():
		return 0, false, errors.New("there is no keyring: nothing is sealed yet")
	}
	return len(ring.Entries()), true, ring.Rewrap(to)
}
