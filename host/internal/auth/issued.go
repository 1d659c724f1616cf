package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// Issued is a token that the host has made, without its text.
type Issued struct {
	ID string
	Principal
	Label  string
	SHA256 [sha256.Size]byte
	// By is who had it made.
	By      string
	Created time.Time
	// Expires is zero for one that lives until it is revoked.
	Expires time.Time
	// Used is when it was last shown, give or take an hour; zero means never.
	Used time.Time
	// Revoked is zero while it is valid.
	Revoked time.Time
}

// Alive reports whether the token opens anything at a time.
func (i Issued) Alive(now time.Time) bool {
	return i.Revoked.IsZero() && (i.Expires.IsZero() || now.Before(i.Expires))
}

// ended is when the token ceased to be valid, zero for one that never does.
func (i Issued) ended() time.Time {
	if !i.Revoked.IsZero() && (i.Expires.IsZero() || i.Revoked.Before(i.Expires)) {
		return i.Revoked
	}
	return i.Expires
}

// TokenStore keeps what was issued. Its methods are safe for concurrent use,
// and what they write is durable when they return.
type TokenStore interface {
	Tokens(ctx context.Context) ([]Issued, error)
	AddToken(ctx context.Context, i Issued) error
	// UpdateTokens writes when tokens were used and revoked. One that is not
	// there, as after its tenant was erased, is left out.
	UpdateTokens(ctx context.Context, changed []Issued) error
	DropTokens(ctx context.Context, ids []string) error
}

// Errors of [Tokens].
var (
	// ErrNoToken says that there is no token of that id.
	ErrNoToken = errors.New("there is no such token")
	// ErrTooManyTokens says that a tenant has as many as it may have.
	ErrTooManyTokens = errors.New("the tenant has too many tokens")
)
