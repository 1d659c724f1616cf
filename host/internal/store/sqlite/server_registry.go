package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"skep/host/internal/peer/registry"
	"skep/host/internal/store/keyring"
)

var _ registry.Store = (*ServerSecrets)(nil)

// SwarmSecret is what the name of a secret begins with that is a registered swarm and its token.
const SwarmSecret = "swarm/"

// Swarms implements [registry.Store].
func (s *ServerSecrets) Swarms(ctx context.Context) ([]registry.Record, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name, value FROM secrets WHERE name >= 'swarm/' COLLATE \"C\" AND name < 'swarm0' COLLATE \"C\" ORDER BY name COLLATE \"C\"")
	list, err := collect(rows, err, func(rows *sql.Rows) (one registry.Record, err error) {
		var name string
		if err = rows.Scan(&name, &one.Revision); err != nil {
			return one, err
		}
		one.Name = strings.TrimPrefix(name, SwarmSecret)
		one.Text, one.Damaged = keyring.UnwrapSecret(s.kek, one.Revision, name)
		return one, nil
	})
	if err != nil {
		err = fmt.Errorf("list the registered swarms on the server: %w", addAdvice(meaning(err)))
	}
	return list, err
}

// SwapSwarm implements [registry.Store].
func (s *ServerSecrets) SwapSwarm(ctx context.Context, old registry.Record, text []byte) (stored registry.Record, ok bool, err error) {
	name := SwarmSecret + old.Name
	stored = registry.Record{Name: old.Name, Text: text}
	if text != nil {
		if stored.Revision, err = keyring.WrapSecret(s.kek, text, name); err != nil {
			return stored, false, err
		}
	}
	ok, err = s.swap(ctx, name, old.Revision, stored.Revision)
	if err != nil {
		err = fmt.Errorf("change the registered swarm %s on the server: %w", old.Name, addAdvice(meaning(err)))
	}
	return stored, ok, err
}

// swap replaces the wrapped text of a secret, nil for none, if it is was, and wakes the other hosts.
func (s *ServerSecrets) swap(ctx context.Context, name string, was, is []byte) (ok bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // after Commit this does nothing
	text, args := "UPDATE secrets SET value = ? WHERE name = ? AND value = ?", []any{is, name, was}
	switch {
	case was == nil && is == nil:
		return true, nil
	case was == nil:
		text, args = "INSERT INTO secrets VALUES (?, ?) ON CONFLICT DO NOTHING", []any{name, is}
	case is == nil:
		text, args = "DELETE FROM secrets WHERE name = ? AND value = ?", []any{name, was}
	}
	r, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	if n == 0 || err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, raiseVersion, SecretsVersion); err != nil {
		return false, err
	}
	return true, tx.Commit()
}
