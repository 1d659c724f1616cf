package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"skep/host/internal/store/keyring"
)

// findServerSecret is [findSecret] on a server.
const findServerSecret = "SELECT value FROM secrets WHERE name = 'store' AND length(value) = 32"

// OpenServerReader opens the store of a server to read, which a host may be using. A schema
// without a store is [fs.ErrNotExist]. Of opts only the keyring counts.
func OpenServerReader(ctx context.Context, at Server, opts Options) (*Reader, error) {
	r, err := openServerReader(ctx, at, opts)
	if err != nil {
		return nil, fmt.Errorf("read the store on a server: %w", addAdvice(err))
	}
	return r, nil
}

func openServerReader(ctx context.Context, at Server, opts Options) (_ *Reader, err error) {
	connector, err := at.connector()
	if err != nil {
		return nil, err
	}
	connector = connector.ReadOnly()
	s := &Store{path: connector.Host(), erasing: map[string]bool{}}
	s.close = sync.OnceValue(s.release)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	s.keyring = newServerKeyring(connector, 0)
	if err := checkServerSchema(ctx, s.keyring.db); err != nil {
		return nil, err
	}
	if opts.Keyring != nil {
		ring := *opts.Keyring
		ring.ReadOnly = true
		opts.Keyring = &ring
	}
	if s.codec, err = openServerCodec(s.keyring, opts.Keyring); err != nil {
		return nil, err
	}
	s.secrets = newServerSecrets(s.keyring, opts.Keyring)
	if s.readers, err = openServerReaders(ctx, connector); err != nil {
		return nil, err
	}
	s.modules = &ServerModules{readers: s.readers}
	r := &Reader{store: s}
	return r, r.prepare(ctx, findServerSecret)
}

// CheckServer refuses a schema without a store that today's statements read, which is
// [fs.ErrNotExist], and changes nothing there.
func CheckServer(ctx context.Context, at Server) error {
	c, err := at.connector()
	if err != nil {
		return err
	}
	db := sql.OpenDB(c.ReadOnly())
	return errors.Join(checkServerSchema(ctx, db), db.Close())
}

// rowQuerier is a database or one connection of it.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkServerSchema returns why a schema must not be read with today's statements.
func checkServerSchema(ctx context.Context, db rowQuerier) error {
	if err := checkServerVersion(ctx, db); err != nil {
		return err
	}
	for _, one := range serverAdditions {
		there, err := one.isThere(ctx, db)
		if err == nil && !there {
			err = fmt.Errorf("its schema has no %s: start a host of this version once, which makes it", one.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkServerVersion returns why this version must not use a schema, unless it migrates it.
func checkServerVersion(ctx context.Context, db rowQuerier) error {
	var there bool
	var version int
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('versions') IS NOT NULL").Scan(&there); err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("the schema has no store: %w", fs.ErrNotExist)
	}
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM versions").Scan(&version); err != nil {
		return err
	}
	if err := tooNew(version, len(serverMigrations)); err != nil {
		return err
	}
	if version < len(serverMigrations) {
		return fmt.Errorf("its schema is version %d and this skep reads version %d: start the host once, which brings it up to date", version, len(serverMigrations))
	}
	return nil
}

// KeyringText returns the text of the keyring, for a copy. Its keys are wrapped as they are.
// Without a keyring it is [fs.ErrNotExist].
func (r *Reader) KeyringText() ([]byte, error) {
	if k := r.store.keyring; k != nil {
		return keyring.ReadTable(k)
	}
	return keyring.Read(r.keyringFile)
}
