package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// IssuedToken is a token that the host has issued, without its text.
type IssuedToken struct {
	ID string
	Principal
	Label  string
	SHA256 [sha256.Size]byte
	// By is who had it issued.
	By      string
	Created time.Time
	// Expires is zero for a token without an end.
	Expires time.Time
	// Used is the last use, accurate to an hour; zero means never.
	Used time.Time
	// Revoked is zero for a token that was not revoked.
	Revoked time.Time
}

// ValidAt reports whether the token is valid at a time.
func (i IssuedToken) ValidAt(now time.Time) bool {
	return i.Revoked.IsZero() && (i.Expires.IsZero() || now.Before(i.Expires))
}

// endedAt is when the token ceased or will cease to be valid, zero for one
// without an end.
func (i IssuedToken) endedAt() time.Time {
	if !i.Revoked.IsZero() && (i.Expires.IsZero() || i.Revoked.Before(i.Expires)) {
		return i.Revoked
	}
	return i.Expires
}

// TokenStore stores issued tokens. Its methods are safe for concurrent use, and
// their writes are durable on return.
type TokenStore interface {
	Tokens(ctx context.Context) ([]IssuedToken, error)
	AddToken(ctx context.Context, i IssuedToken) error
	// UpdateTokens writes Used and Revoked. It ignores tokens that are not
	// stored, as after their tenant was erased.
	UpdateTokens(ctx context.Context, changed []IssuedToken) error
	DropTokens(ctx context.Context, ids []string) error
}

// Errors of [Tokens].
var (
	// ErrNoToken means that no token has the id.
	ErrNoToken = errors.New("there is no such token")
	// ErrTooManyTokens means that the tenant has reached its limit.
	ErrTooManyTokens = errors.New("the tenant has too many tokens")
)
