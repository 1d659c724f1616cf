package model

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Kind classifies the failure of a call.
type Kind string

// The kinds of an [Error].
const (
	// RateLimited, Overloaded and Unavailable are temporary.
	RateLimited Kind = "rate_limited"
	Overloaded  Kind = "overloaded"
	Unavailable Kind = "unavailable"
	// Resting is a call that is not made, because calls before it failed.
	Resting Kind = "resting"
	// Refused is a request that the provider does not accept.
	Refused Kind = "refused"
	// TooLong is a conversation that does not fit into the model.
	TooLong Kind = "too_long"
	// TooLarge is an answer beyond a limit of this package.
	TooLarge Kind = "too_large"
	// Auth is a key, an account or an address that the operator must correct.
	Auth Kind = "auth"
	// Malformed is an answer that is not in the provider's format.
	Malformed Kind = "malformed"
	// Unexpected is a prompt without an answer in a script or a cassette.
	Unexpected Kind = "unexpected"
)

// Error is the failure of a call. It never contains the key.
type Error struct {
	Kind Kind
	// Name is the NAME of [models.NAME].
	Name string
	// Status is the provider's HTTP status, 0 if there is none.
	Status int
	// RetryAfter is the pause that the provider asks for, 0 if it asks for none.
	RetryAfter time.Duration
	// Billable is set if the provider began to answer in one of the attempts, or had the
	// request when the time ran out: it may charge for the call.
	Billable bool
	// Message explains what to do. It may quote the provider, in 500 bytes at most.
	Message string
	// Short is what has happened in a few words of this package, empty where Kind says it.
	Short string
}

// Cause returns why the call failed, for operators. Nothing in it is of the call or of the provider.
func (e *Error) Cause() string {
	text := cmp.Or(e.Short, strings.ReplaceAll(string(e.Kind), "_", " "))
	if e.Status != 0 {
		text = fmt.Sprintf("status %d, %s", e.Status, text)
	}
	return "models." + e.Name + ": " + text
}

// inShort adds what has happened in a few words.
func (e *Error) inShort(text string) *Error {
	e.Short = text
	return e
}

// Error is the message with the model's name.
func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (status %d)", e.Status)
	}
	return "models." + e.Name + ": " + e.Message + status
}

// KeyError is an error about one key of a [Spec], by its name in the file.
type KeyError struct {
	Key string
	Err error
}

// Error begins with the key.
func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// cassetteError is an error about the cassette or script file.
func cassetteError(format string, args ...any) error {
	return &KeyError{"cassette", fmt.Errorf(format, args...)}
}

// isTemporary reports whether another attempt may succeed.
func (e *Error) isTemporary() bool {
	return e.Kind == RateLimited || e.Kind == Overloaded || e.Kind == Unavailable
}

func newError(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// maxQuoted bounds a provider's text in an error, in bytes.
const maxQuoted = 500

// quote puts foreign text on one line for an error.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
