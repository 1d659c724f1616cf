package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"

	"skep/host/internal/store/keyring"
)

// ServerSecrets are the secrets of hosts on a server. They belong to no tenant. A secret has a name, and is
// wrapped with [store] keyring.
type ServerSecrets struct {
	db  *sql.DB
	kek []byte
	// close is set for those that have a connection of their own.
	close func() error
}

// newServerSecrets uses the connection of a keyring, which is seldom used.
func newServerSecrets(k *serverKeyring, opts *keyring.Options) *ServerSecrets {
	s := &ServerSecrets{db: k.db}
	if opts != nil {
		s.kek = opts.KEK
	}
	return s
}

// Secrets returns the secrets of hosts on the store's server, nil for a store in a file.
func (s *Store) Secrets() *ServerSecrets { return s.secrets }

// Secrets is [Store.Secrets]. Nothing is written by it.
func (r *Reader) Secrets() *ServerSecrets { return r.store.secrets }

// OpenServerSecrets opens the secrets of a server beside the hosts that use it. The caller closes them.
func OpenServerSecrets(ctx context.Context, at Server, kek []byte) (*ServerSecrets, error) {
	c, err := at.connector()
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c.Durable())
	if err := checkServerVersion(ctx, db); err != nil {
		return nil, errors.Join(addAdvice(meaning(err)), db.Close())
	}
	if err := checkMoved(ctx, db); err != nil {
		return nil, errors.Join(addAdvice(err), db.Close())
	}
	return &ServerSecrets{db: db, kek: kek, close: db.Close}, nil
}

// Close closes what [OpenServerSecrets] has opened.
func (s *ServerSecrets) Close() error { return s.close() }

// findHostSecret reads a secret but the store's own, which is not wrapped.
const findHostSecret = "SELECT value FROM secrets WHERE name = ? AND name <> 'store'"

// ReadSecret returns a secret, [fs.ErrNotExist] where there is none.
func (s *ServerSecrets) ReadSecret(ctx context.Context, name string) ([]byte, error) {
	var wrapped []byte
	err := s.db.QueryRowContext(ctx, findHostSecret, name).Scan(&wrapped)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("the server has no %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s on the server: %w", name, addAdvice(meaning(err)))
	}
	return openSecret(s.kek, wrapped, name)
}

// KeepSecret keeps a secret, unless there is one of its name. It returns the one that is kept, which is durable.
// Of hosts that do so at once all get the same. After an error it may be kept.
func (s *ServerSecrets) KeepSecret(ctx context.Context, name string, plain []byte) (kept []byte, made bool, err error) {
	wrapped, err := keyring.WrapSecret(s.kek, plain, name)
	if err != nil {
		return nil, false, err
	}
	r, err := s.db.ExecContext(ctx, "INSERT INTO secrets VALUES (?, ?) ON CONFLICT DO NOTHING", name, wrapped)
	if err != nil {
		return nil, false, fmt.Errorf("keep %s on the server: %w", name, addAdvice(meaning(err)))
	}
	n, err := r.RowsAffected()
	if err != nil {
		return nil, false, err
	}
	kept, err = s.ReadSecret(ctx, name)
	return kept, n > 0, err
}

// SecretsVersion is the name of the version that a change of a secret raises.
const SecretsVersion = "secrets"

// ReplaceSecret replaces a secret, and wakes the hosts that share the server, which read it again.
func (s *ServerSecrets) ReplaceSecret(ctx context.Context, name string, plain []byte) error {
	wrapped, err := keyring.WrapSecret(s.kek, plain, name)
	if err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return addAdvice(meaning(err))
	}
	defer tx.Rollback() // after Commit this does nothing
	_, err = tx.ExecContext(ctx, "INSERT INTO secrets VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, wrapped)
	if err == nil {
		_, err = tx.ExecContext(ctx, raiseVersion, SecretsVersion)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		err = fmt.Errorf("replace %s on the server: %w", name, addAdvice(meaning(err)))
	}
	return err
}

func openSecret(kek, wrapped []byte, name string) ([]byte, error) {
	plain, err := keyring.UnwrapSecret(kek, wrapped, name)
	if err != nil {
		err = fmt.Errorf("%s on the server: %w", name, err)
	}
	return plain, err
}

// rewrapSecrets wraps the secrets of hosts anew, and returns how many it has. Those that are wrapped with to stay as
// they are: it may have been broken off.
func rewrapSecrets(ctx context.Context, c *sql.Conn, from, to []byte) (n int, err error) {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // after Commit this does nothing
	all, err := hostSecrets(ctx, tx)
	if err != nil {
		return 0, err
	}
	for name, wrapped := range all {
		if _, err := keyring.UnwrapSecret(to, wrapped, name); err == nil {
			continue
		}
		plain, err := openSecret(from, wrapped, name)
		if err == nil {
			wrapped, err = keyring.WrapSecret(to, plain, name)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE secrets SET value = ? WHERE name = ?", wrapped, name)
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, tx.Commit()
}

// hostSecrets reads the secrets of hosts, wrapped, by name.
func hostSecrets(ctx context.Context, tx *sql.Tx) (map[string][]byte, error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, value FROM secrets WHERE name <> 'store'")
	all := map[string][]byte{}
	_, err = collect(rows, err, func(rows *sql.Rows) (name string, err error) {
		var wrapped []byte
		err = rows.Scan(&name, &wrapped)
		all[name] = wrapped
		return name, err
	})
	return all, err
}

// wrapSecrets wraps secrets that go to a server.
func wrapSecrets(plain map[string][]byte, kek []byte) (wrapped map[string][]byte, err error) {
	wrapped = make(map[string][]byte, len(plain))
	for name, secret := range plain {
		if wrapped[name], err = keyring.WrapSecret(kek, secret, name); err != nil {
			return nil, err
		}
	}
	return wrapped, nil
}

// fillSecrets writes wrapped secrets, in place of those that the hosts of an empty store have made.
func fillSecrets(ctx context.Context, to *sql.Tx, wrapped map[string][]byte) error {
	for name, secret := range wrapped {
		const set = "INSERT INTO secrets VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
		if _, err := to.ExecContext(ctx, set, name, secret); err != nil {
			return err
		}
	}
	return nil
}

// unwrapSecrets reads the secrets of a server.
func unwrapSecrets(ctx context.Context, readers *sql.DB, kek []byte) (plain map[string][]byte, err error) {
	tx, err := readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // it only reads
	if plain, err = hostSecrets(ctx, tx); err != nil {
		return nil, err
	}
	for name, wrapped := range plain {
		if plain[name], err = openSecret(kek, wrapped, name); err != nil {
			return nil, err
		}
	}
	return plain, nil
}
