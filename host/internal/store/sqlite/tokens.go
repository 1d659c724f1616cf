package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

var _ auth.TokenStore = (*Store)(nil)

// tokenStmts writes the table of issued tokens. What is in it is not sealed: it is
// names, dates and digests.
type tokenStmts struct {
	add, update, drop *sql.Stmt
}

func (i *tokenStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&i.add: "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		// Another host may have revoked the token, or seen a later use.
		&i.update: `UPDATE tokens SET used = CASE WHEN used < ?1 THEN ?1 ELSE used END,
			revoked = CASE WHEN revoked < ?2 THEN ?2 ELSE revoked END WHERE id = ?3`,
		&i.drop: "DELETE FROM tokens WHERE id = ?",
	}
}

// listTokens is asked once in the life of a host. An erasure that was cut short
// may have a long way to go to a tenant's tokens, which must open nothing by then.
const listTokens = fromTokens + " ORDER BY created, id"

const fromTokens = `SELECT id, tenant, role, principal, peer, label, made_by, sha256, created, expires, used, revoked
	FROM tokens WHERE tenant NOT IN (SELECT tenant FROM chores WHERE kind = 'erase')`

// findToken is asked by hosts that share a server: another one may have just issued the token.
const findToken = fromTokens + " AND sha256 = ?"

// TokensVersion is the name of the version that a change of tokens raises.
const TokensVersion = "tokens"

// Tokens implements [auth.TokenStore].
func (s *Store) Tokens(ctx context.Context) ([]auth.IssuedToken, error) {
	all, err := readRows(ctx, s.readers.queryText(listTokens), scanIssued)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", addAdvice(err))
	}
	return s.dropBlocked(all), nil
}

// dropBlocked leaves out tokens of tenants that are to be removed: where hosts share a server, an erasure is noted
// once each of them has blocked the tenant.
func (s *Store) dropBlocked(all []auth.IssuedToken) []auth.IssuedToken {
	return slices.DeleteFunc(all, func(i auth.IssuedToken) bool { return s.isErasing(i.Tenant) })
}

// FindToken reads a token by the digest of its text, or returns [auth.ErrNoToken].
func (s *Store) FindToken(ctx context.Context, digest [sha256.Size]byte) (auth.IssuedToken, error) {
	found, err := readRows(ctx, s.readers.queryText(findToken, digest[:]), scanIssued)
	if err != nil {
		return auth.IssuedToken{}, fmt.Errorf("find a token: %w", addAdvice(err))
	}
	if found = s.dropBlocked(found); len(found) == 0 {
		return auth.IssuedToken{}, auth.ErrNoToken
	}
	return found[0], nil
}

func scanIssued(rows *sql.Rows) (i auth.IssuedToken, err error) {
	var id, tenant, role, principal, peer, label, by, digest []byte
	var created, expires, used, revoked int64
	err = rows.Scan(&id, &tenant, &role, &principal, &peer, &label, &by, &digest, &created, &expires, &used, &revoked)
	if err == nil && len(digest) != sha256.Size {
		err = fmt.Errorf("the digest of token %s has %d bytes", id, len(digest))
	}
	copy(i.SHA256[:], digest)
	i.ID, i.Label, i.By = string(id), string(label), string(by)
	i.Principal = auth.Principal{Tenant: string(tenant), Role: auth.Role(role), ID: string(principal), Peer: string(peer)}
	i.Created, i.Expires, i.Used, i.Revoked = unstamp(created), unstamp(expires), unstamp(used), unstamp(revoked)
	return i, err
}

// AddToken implements [auth.TokenStore].
func (s *Store) AddToken(ctx context.Context, i auth.IssuedToken) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.erasing[i.Tenant] {
		return fmt.Errorf("%w: %q", swarm.ErrErasing, i.Tenant)
	}
	return tokenFault("add", s.writer.submit(ctx, tokenWrite(func(ctx context.Context, t *tokenStmts) error {
		_, err := t.add.ExecContext(ctx, []byte(i.ID), []byte(i.Tenant), []byte(i.Role), []byte(i.Principal.ID), []byte(i.Peer),
			[]byte(i.Label), []byte(i.By), i.SHA256[:], stamp(i.Created), stamp(i.Expires), stamp(i.Used), stamp(i.Revoked))
		return err
	})))
}

// UpdateTokens implements [auth.TokenStore].
func (s *Store) UpdateTokens(ctx context.Context, changed []auth.IssuedToken) error {
	return tokenFault("change", s.writer.submit(ctx, tokenWrite(func(ctx context.Context, t *tokenStmts) error {
		for _, i := range changed {
			if _, err := t.update.ExecContext(ctx, stamp(i.Used), stamp(i.Revoked), []byte(i.ID)); err != nil {
				return err
			}
		}
		return nil
	})))
}

// DropTokens implements [auth.TokenStore].
func (s *Store) DropTokens(ctx context.Context, ids []string) error {
	return tokenFault("drop", s.writer.submit(ctx, tokenWrite(func(ctx context.Context, t *tokenStmts) error {
		for _, id := range ids {
			if _, err := t.drop.ExecContext(ctx, []byte(id)); err != nil {
				return err
			}
		}
		return nil
	})))
}

func tokenFault(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s tokens: %w", what, addAdvice(err))
	}
	return nil
}

// tokenWrite is a write to the table of tokens.
type tokenWrite func(ctx context.Context, t *tokenStmts) error

func (tokenWrite) bytes() int { return purgeSlice }

func (w tokenWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := w(ctx, &t.issued); err != nil {
		return 0, err
	}
	return 0, t.shared.raiseVersion(ctx, TokensVersion)
}

// token is a token in an export. Its digest is no data of the tenant's.
type token struct {
	ID        string    `json:"id"`
	Role      auth.Role `json:"role"`
	Principal string    `json:"principal"`
	Peer      string    `json:"peer,omitempty"`
	Label     string    `json:"label"`
	By        string    `json:"by"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Used      time.Time `json:"last_used,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
}

// exportTokens writes a tenant's tokens.
func (s *Store) exportTokens(ctx context.Context, tenant string, enc *json.Encoder) error {
	all, err := s.Tokens(ctx)
	for _, i := range all {
		if err != nil {
			break
		}
		if i.Tenant != tenant {
			continue
		}
		var raw []byte
		raw, err = json.Marshal(token{i.ID, i.Role, i.Principal.ID, i.Peer, i.Label, i.By, i.Created, i.Expires, i.Used, i.Revoked})
		if err == nil {
			err = enc.Encode(line{Kind: "token", Data: raw})
		}
	}
	return err
}
