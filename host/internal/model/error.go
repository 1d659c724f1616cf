package model

import (
	"fmt"
	"strings"
	"time"
)

// Kind says what went wrong with a call.
type Kind string

// The kinds of an [Error].
const (
	// RateLimited, Overloaded and Unavailable pass by themselves.
	RateLimited Kind = "rate_limited"
	Overloaded  Kind = "overloaded"
	Unavailable Kind = "unavailable"
	// Refused is a request that the provider does not take.
	Refused Kind = "refused"
	// TooLong is a conversation that does not fit into the model.
	TooLong Kind = "too_long"
	// TooLarge is an answer beyond a bound of this package.
	TooLarge Kind = "too_large"
	// Auth is a key, an account or an address that the operator must mend.
	Auth Kind = "auth"
	// Malformed is an answer that is not in the provider's format.
	Malformed Kind = "malformed"
	// Unexpected is a prompt that a script or a cassette has no answer for.
	Unexpected Kind = "unexpected"
)

// Error is why a call has no answer. It never holds the key.
type Error struct {
	Kind Kind
	// Name is that of [models.NAME].
	Name string
	// Status is the provider's, 0 when it gave none.
	Status int
	// RetryAfter is how long the provider asks to wait, 0 when it does not say.
	RetryAfter time.Duration
	// Begun says that the provider had begun to answer in one of the tries, or
	// let the call's time pass with the request: it may want money.
	Begun bool
	// Message says what to do. It may quote the provider, in 500 bytes at most.
	Message string
}

// Error is the message with the model's name.
func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (status %d)", e.Status)
	}
	return "models." + e.Name + ": " + e.Message + status
}

// KeyError is what is wrong with one key of a [Spec], by its name in the file.
type KeyError struct {
	Key string
	Err error
}

// Error begins with the key.
func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// ofCassette is a fault of the file that a model answers from.
func ofCassette(format string, args ...any) error {
	return &KeyError{"cassette", fmt.Errorf(format, args...)}
}

// passes reports whether another try may succeed.
func (e *Error) passes() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unavailable
}

func fault(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// maxQuoted is the most bytes of a provider's text in an error.
const maxQuoted = 500

// quote is foreign text for an error, on one line.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
