package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Authenticator finds the principal of a token.
type Authenticator interface {
	// Authenticate returns an error that is [ErrUnknown] for a token that no
	// principal has, and an *[Unavailable] when it cannot be checked now. It is
	// safe for concurrent use and stores no token.
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Backend is one Authenticator of a [Chain].
type Backend interface {
	Authenticator
	// Claims reports whether tokens of this form belong to this backend. Such a
	// token must not be shown to another one.
	Claims(token string) bool
}

// ErrUnknown means that no principal has the token.
var ErrUnknown = errors.New("the token is nobody's")

// Unknown is an [ErrUnknown] with a reason.
type Unknown struct {
	// Detail is the text for the caller, empty for the common text.
	Detail string
	// Reason is for the operator only.
	Reason string
}

// Error returns the reason.
func (u *Unknown) Error() string { return u.Reason }

// Is makes it an [ErrUnknown].
func (u *Unknown) Is(target error) bool { return target == ErrUnknown }

func unknownToken(format string, args ...any) error {
	return &Unknown{Reason: fmt.Sprintf(format, args...)}
}

// Unavailable means that an external auth backend does not answer as it should.
type Unavailable struct {
	// Backend is the backend's table in the configuration.
	Backend string
	Err     error
	// Retry is how long the caller should wait.
	Retry time.Duration
}

// Error names the backend and the cause.
func (u *Unavailable) Error() string { return u.Backend + ": " + u.Err.Error() }

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }

// Chain tries backends in order, up to the one that has the token or claims it.
type Chain []Backend

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
