package mail

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrLimit is what errors.Is finds in the error for a value that is larger,
// longer or deeper than its [Limits] allow. A door answers it with "too large"
// instead of "malformed".
var ErrLimit = errors.New("limit exceeded")

// FieldError names the wrong field and why it is wrong. Every error of the parsers and
// validators in this package is or wraps a *FieldError. Reason never quotes the
// value, so the error may be logged and sent to the caller.
type FieldError struct {
	// Path leads to the field, such as "message.recipients[2].address". It is
	// empty for the value as a whole.
	Path string
	// Reason completes the sentence "<path> …", such as "must be a UUID".
	Reason string

	limit bool
}

// Error returns "path: reason".
func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Is reports whether target is [ErrLimit] and the fault is a limit.
func (e *FieldError) Is(target error) bool { return target == ErrLimit && e.limit }

func faultf(path, format string, args ...any) *FieldError {
	return &FieldError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

func limitf(path, format string, args ...any) *FieldError {
	return &FieldError{Path: path, Reason: fmt.Sprintf(format, args...), limit: true}
}

// under moves an error one level down, so that a path is only built when there
// is something to report.
func under(step string, err error) error {
	e, ok := errors.AsType[*FieldError](err)
	if !ok {
		return err
	}
	e.Path = JoinPath(step, e.Path)
	return e
}

// JoinPath joins two parts of a [FieldError]'s path; either may be empty.
func JoinPath(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// maxStep bounds what one foreign key may add to a path.
const maxStep = 64

// PathKey returns a key that a stranger chose as it stands in a path: a plain one
// as it is, others quoted, long ones cut.
func PathKey(key string) string {
	cut := len(key) > maxStep
	if cut {
		key = key[:maxStep]
	}
	if !cut && key != "" && strings.IndexFunc(key, notPlain) < 0 {
		return key
	}
	if cut {
		return "[" + strconv.QuoteToASCII(key) + "…]"
	}
	return "[" + strconv.QuoteToASCII(key) + "]"
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}
