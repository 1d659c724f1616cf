package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Authenticator tells whose a token is.
type Authenticator interface {
	// Authenticate returns an error that is [ErrUnknown] for a token that is
	// nobody's, and an *[Unavailable] when that cannot be told now. It is safe
	// for concurrent use and keeps no token.
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Authority is an Authenticator beside others.
type Authority interface {
	Authenticator
	// Claims reports whether tokens of this form are this authority's alone to
	// judge, so that they must not be shown to another.
	Claims(token string) bool
}

// ErrUnknown says that a token is nobody's.
var ErrUnknown = errors.New("the token is nobody's")

// Unknown is an [ErrUnknown] that says more.
type Unknown struct {
	// Detail is what the caller is told, empty for the common text.
	Detail string
	// Reason is for the operator; the caller is never shown it.
	Reason string
}

// Error gives the reason.
func (u *Unknown) Error() string { return u.Reason }

// Is makes it an [ErrUnknown].
func (u *Unknown) Is(target error) bool { return target == ErrUnknown }

func unknown(format string, args ...any) error {
	return &Unknown{Reason: fmt.Sprintf(format, args...)}
}

// Unavailable says that an authority outside the host does not answer, or not
// as it should.
type Unavailable struct {
	// Authority names it by the key of the configuration to look at.
	Authority string
	Err       error
	// Retry is when to come again.
	Retry time.Duration
}

// Error names the authority and the cause.
func (u *Unavailable) Error() string { return u.Authority + ": " + u.Err.Error() }

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }

// Chain asks authorities in order, up to the one that knows the token or that
// alone may judge it.
type Chain []Authority

var _ Authenticator = Chain(nil)

// Authenticate implements [Authenticator].
func (c Chain) Authenticate(ctx context.Context, token string) (Principal, error) {
	last := error(ErrUnknown)
	for _, a := range c {
		p, err := a.Authenticate(ctx, token)
		if err == nil || !errors.Is(err, ErrUnknown) {
			return p, err
		}
		last = err
		if a.Claims(token) {
			break
		}
	}
	return Principal{}, last
}
