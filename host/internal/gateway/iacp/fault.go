package iacp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Codes of an error_response (I-070).
const (
	codeInvalid = message.InvalidFormat
	codeVersion = message.UnsupportedVersion
	codeAuth    = "AUTHENTICATION_FAILED"
	codeUnknown = "AGENT_NOT_FOUND"
	codeTimeout = "TIMEOUT"
	codeDenied  = "PERMISSION_DENIED"
)

// Reasons in the details of an error_response: the document has no code for them.
const (
	reasonConflict = "conflict"
	reasonExpired  = "expired"
	reasonBusy     = "busy"
	reasonStopping = "stopping"
	reasonInternal = "internal"
	reasonTooLarge = "too_large"
	reasonFailing  = "failing"
)

// alias is the other name of codeInvalid (D-I2).
const alias = "INVALID_FORMAT"

// retrySeconds is when what may be taken later is sent again.
const retrySeconds = 5

// fault is why a message is refused, as its sender may see it.
type fault struct {
	code, reason, text string
	expected           string
	retry              bool
	after              int // seconds, 0 for retrySeconds
}

// Error implements error.
func (f *fault) Error() string { return f.text }

// Cause is the code, or the reason, in the word of the host's logs.
func (f *fault) Cause() string {
	switch f.code {
	case codeUnknown:
		return "not_found"
	case codeAuth:
		return "credentials"
	case codeDenied:
		return "role"
	}
	switch f.reason {
	case reasonConflict, reasonStopping, reasonTooLarge:
		return f.reason
	case reasonBusy:
		return "limit"
	case reasonInternal:
		return "unavailable"
	}
	return gateway.CauseInvalid
}

// kind is an error of the runtime, and what the protocol has for it.
type kind struct {
	err error
	fault
}

// kinds are the errors of the runtime as the protocol has them.
var kinds = []kind{
	{gateway.ErrUnknown, fault{code: codeUnknown}},
	{gateway.ErrConflict, fault{code: codeInvalid, reason: reasonConflict}},
	{gateway.ErrDenied, fault{code: codeDenied}},
	{gateway.ErrInvalid, fault{code: codeInvalid}},
	{gateway.ErrBusy, fault{code: codeTimeout, reason: reasonBusy, retry: true}},
	{gateway.ErrDraining, fault{code: codeTimeout, reason: reasonStopping, retry: true}},
	{gateway.ErrElsewhere, fault{code: codeTimeout, reason: reasonBusy, retry: true}},
	{message.ErrTooLarge, fault{code: codeInvalid, reason: reasonTooLarge}},
	{message.ErrEmpty, fault{code: codeInvalid}},
	{message.ErrOrder, fault{code: codeInvalid}},
	{message.ErrTLS, fault{code: codeInvalid}},
}

// isRefusal reports whether an error is what the runtime, or this gateway, has decided.
func isRefusal(err error) bool {
	return errors.As(err, new(*fault)) || slices.ContainsFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) })
}

// faultOf returns an error as its sender may see it. A fault of the host is logged and
// shown without its text.
func (g *Gateway) faultOf(err error) *fault {
	if f := new(fault); errors.As(err, &f) {
		return f
	}
	if open := new(circuitOpenError); errors.As(err, &open) {
		return &fault{code: codeUnknown, reason: reasonFailing, text: err.Error(), retry: true, after: int(math.Ceil(open.after.Seconds()))}
	}
	if f := new(message.Fault); errors.As(err, &f) {
		return &fault{code: f.Code, text: f.Text, expected: f.Expected}
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f := k.fault
			f.text = err.Error()
			return &f
		}
	}
	if !errors.Is(err, context.Canceled) {
		g.Log.Error("iacp: a message failed", "error", err)
	}
	return &fault{code: codeTimeout, reason: reasonInternal, text: "the host could not do this", retry: true}
}

func refusedf(code, format string, args ...any) error {
	return &fault{code: code, text: fmt.Sprintf(format, args...)}
}

// errorPayload is the payload of an error_response (I-040).
type errorPayload struct {
	Code    string         `json:"error_code"`
	Message string         `json:"error_message"`
	Details map[string]any `json:"details"`
	Retry   bool           `json:"retry_allowed"`
	After   int            `json:"retry_after,omitempty"` // seconds
}

func (f *fault) payload() errorPayload {
	p := errorPayload{Code: f.code, Message: f.text, Details: map[string]any{}, Retry: f.retry}
	for name, value := range map[string]string{"reason": f.reason, "expected": f.expected} {
		if value != "" {
			p.Details[name] = value
		}
	}
	if f.code == codeInvalid {
		p.Details["alias"] = alias
	}
	if f.retry {
		p.After = cmp.Or(f.after, retrySeconds)
	}
	return p
}
