package skep

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"skep/sdk/go/internal/abi"
)

// Code is one of the closed set of reasons for which the host refuses a call.
// It is an error, so that errors.Is(err, skep.Denied) reads well.
type Code int32

// The closed set of codes.
const (
	Invalid     = Code(abi.CodeInvalid)     // bad arguments
	Denied      = Code(abi.CodeDenied)      // not granted to this agent
	NotFound    = Code(abi.CodeNotFound)    // no such thing
	Unavailable = Code(abi.CodeUnavailable) // try again later
	Deadline    = Code(abi.CodeDeadline)    // out of time
	// Cancelled: the turn is called off. What it does in the next 250 ms
	// still counts if it then ends well: it may save its state and return nil.
	Cancelled = Code(abi.CodeCancelled)
	// Limit: a budget, size or rate is used up; the Reason names it,
	// for instance host_calls or host_bytes. The turn goes on.
	Limit       = Code(abi.CodeLimit)
	Conflict    = Code(abi.CodeConflict)    // does not fit the present state
	Upstream    = Code(abi.CodeUpstream)    // the other side answered with an error
	Unsupported = Code(abi.CodeUnsupported) // this host cannot do it
	Internal    = Code(abi.CodeInternal)    // a fault of the host or the agent
)

// String returns the code's name, for instance DENIED.
func (c Code) String() string {
	if c < 0 || int(c) >= len(abi.CodeNames) {
		return fmt.Sprintf("CODE_%d", int32(c))
	}
	return abi.CodeNames[c]
}

// Error implements error.
func (c Code) Error() string { return c.String() }

// Error is a call the host refused or could not do.
type Error struct {
	Code Code
	// Op is the name of the op that failed.
	Op string
	// Reason is a short word for programs, for instance "comm_targets".
	Reason string
	// RetryAfter is how long to wait before a retry makes sense.
	RetryAfter time.Duration
	Message    string
}

// Error renders "DENIED: message".
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Is makes errors.Is(err, skep.Denied) true for an error with that code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Errorf makes an error for an agent's turn to return. The code goes to the
// host with the message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errorBody is the JSON form of an error, both ways.
type errorBody struct {
	Code         string `json:"code,omitempty"`
	Op           string `json:"op,omitempty"`
	Reason       string `json:"reason,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Message      string `json:"message"`
}

// hostError decodes the error body of a failed op or import.
func hostError(op string, code abi.Code, body []byte) *Error {
	var b errorBody
	if json.Unmarshal(body, &b) != nil || b.Message == "" {
		b.Message = "the host gave no message"
	}
	if b.Op == "" {
		b.Op = op
	}
	return &Error{
		Code: Code(code), Op: b.Op, Reason: b.Reason, Message: b.Message,
		RetryAfter: time.Duration(b.RetryAfterMS) * time.Millisecond,
	}
}

// encodeError renders what a failed turn writes as its output.
func encodeError(err error) []byte {
	body := errorBody{Code: Internal.String(), Message: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		body.Code, body.Op, body.Reason = e.Code.String(), e.Op, e.Reason
		body.RetryAfterMS = e.RetryAfter.Milliseconds()
		if error(e) == err { // not wrapped: the code need not be said twice
			body.Message = e.Message
		}
	}
	out, _ := marshal(body) // strings and a number always encode
	return out
}
