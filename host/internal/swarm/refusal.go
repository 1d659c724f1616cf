package swarm

import (
	"errors"
	"fmt"
	"time"
)

// Kinds of refusal a door maps to its own codes. ErrNotFound is one, too.
var (
	ErrInvalid  = errors.New("invalid")
	ErrConflict = errors.New("conflict")
	ErrLimit    = errors.New("limit")
	// ErrForbidden says that the caller is somebody else than it would have to be.
	ErrForbidden = errors.New("forbidden")
	// ErrDraining says that the host is shutting down; what it has accepted
	// goes on at the next start.
	ErrDraining = errors.New("shutting down")
)

// Refusal is an answer to a door: nothing was changed. It unwraps to its kind;
// its text is meant for the caller.
type Refusal struct {
	Kind error
	Text string
	// Retry is when the same may be accepted, zero for the door's own choice.
	Retry time.Duration
}

// Error returns the text alone, because doors show it as it is.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

func refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Text: fmt.Sprintf(format, args...)}
}
