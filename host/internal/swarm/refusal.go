package swarm

import (
	"errors"
	"fmt"
	"time"
)

// Kinds of refusal that a door maps to its own codes. ErrNotFound is one, too.
var (
	ErrInvalid  = errors.New("invalid")
	ErrConflict = errors.New("conflict")
	ErrLimit    = errors.New("limit")
	// ErrForbidden refuses a caller that is not the required one.
	ErrForbidden = errors.New("forbidden")
	// ErrDraining means that the host is shutting down; accepted work goes on at the
	// next start.
	ErrDraining = errors.New("shutting down")
)

// Refusal is the answer to a door when nothing was changed. It unwraps to its kind; its
// text is for the caller.
type Refusal struct {
	Kind error
	Text string
	// Retry is the time after which the same may be accepted, zero for the door's own
	// choice.
	Retry time.Duration
	// Cause is a word for logs that have no text of a caller, empty for the door's own. Key is the
	// key of swarm.toml that holds the limit, if one does.
	Cause, Key string
}

// Error returns the text alone, because doors show it as it is.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

func refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// refuseAt refuses what a limit does not admit; key is the limit's in swarm.toml.
func refuseAt(key, format string, args ...any) error {
	return &Refusal{Kind: ErrLimit, Key: key, Text: fmt.Sprintf(format, args...)}
}

// refuseFor refuses an invalid demand for a cause that logs name.
func refuseFor(cause, format string, args ...any) error {
	return &Refusal{Kind: ErrInvalid, Cause: cause, Text: fmt.Sprintf(format, args...)}
}
