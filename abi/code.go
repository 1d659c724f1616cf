package abi

import (
	"fmt"
	"strings"
)

// Code is one of the closed set of error codes. A guest sees it negated as the
// result of call, submit, wait and read; the error body is read with op
// last_error. The numbers are the same over gRPC.
type Code int32

// The closed set. 0 is no error.
const (
	CodeOK          Code = 0
	CodeInvalid     Code = 1
	CodeDenied      Code = 2
	CodeNotFound    Code = 3
	CodeUnavailable Code = 4
	CodeDeadline    Code = 5
	CodeCancelled   Code = 6
	CodeLimit       Code = 7
	CodeConflict    Code = 8
	CodeUpstream    Code = 9
	CodeUnsupported Code = 10
	CodeInternal    Code = 11
)

var codeNames = [...]string{
	"OK", "INVALID", "DENIED", "NOT_FOUND", "UNAVAILABLE", "DEADLINE", "CANCELLED",
	"LIMIT", "CONFLICT", "UPSTREAM", "UNSUPPORTED", "INTERNAL",
}

// String returns the name guests and people see, for instance "DENIED".
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("CODE_%d", int32(c))
	}
	return codeNames[c]
}

// MaxErrorMessage is the longest message of an [Error], in bytes of UTF-8.
const MaxErrorMessage = 4 << 10

// Error is a refused or failed op, and the JSON body that op last_error
// returns for it.
type Error struct {
	Code Code `json:"-"`
	// Op is the op's name, for instance "mail".
	Op string `json:"op"`
	// Reason is a short machine-readable word, for instance "comm_targets".
	Reason string `json:"reason,omitempty"`
	// RetryAfterMS is 0 when a retry makes no sense or may be at once.
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Message      string `json:"message"`
}

// Error renders the form that scripts and histories show: "DENIED: message".
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Errorf makes an [Error] with a formatted message.
func Errorf(code Code, op Op, reason, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	if len(msg) > MaxErrorMessage {
		msg = strings.ToValidUTF8(msg[:MaxErrorMessage], "")
	}
	return &Error{Code: code, Op: op.String(), Reason: reason, Message: msg}
}
