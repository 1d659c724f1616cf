package message

import (
	"fmt"
	"net/http"
	"time"
)

// Code is an error code of the document. No other is written (M-078).
type Code string

// The codes.
const (
	AgentNotFound         Code = "AGENT_NOT_FOUND"
	CapabilityNotFound    Code = "CAPABILITY_NOT_FOUND"
	AuthenticationFailed  Code = "AUTHENTICATION_FAILED"
	RateLimitExceeded     Code = "RATE_LIMIT_EXCEEDED"
	Timeout               Code = "TIMEOUT"
	InvalidSchema         Code = "INVALID_SCHEMA"
	ContextNotFound       Code = "CONTEXT_NOT_FOUND"
	InsufficientResources Code = "INSUFFICIENT_RESOURCES"
)

// statuses are the HTTP statuses of the codes (M-077).
var statuses = map[Code]int{
	AgentNotFound: http.StatusNotFound, CapabilityNotFound: http.StatusNotFound, AuthenticationFailed: http.StatusUnauthorized,
	RateLimitExceeded: http.StatusTooManyRequests, Timeout: http.StatusGatewayTimeout, InvalidSchema: http.StatusBadRequest,
	ContextNotFound: http.StatusNotFound, InsufficientResources: http.StatusServiceUnavailable,
}

// Reasons in the details of an error, for what the document has no code (M-078).
const (
	ReasonMalformed  = "MALFORMED"
	ReasonTooLarge   = "TOO_LARGE"
	ReasonProtocol   = "PROTOCOL_UNKNOWN"
	ReasonVersion    = "VERSION_UNSUPPORTED"
	ReasonConflict   = "CONFLICT"
	ReasonForbidden  = "FORBIDDEN"
	ReasonCredential = "CREDENTIAL"
	ReasonSignature  = "SIGNATURE"
	ReasonExpired    = "EXPIRED"
	ReasonMessage    = "MESSAGE_NOT_FOUND"
	ReasonViolations = "VIOLATIONS"
	ReasonInternal   = "INTERNAL"
	ReasonDraining   = "DRAINING"
	ReasonCallback   = "CALLBACK"
	ReasonFull       = "FULL"
	// ReasonVersionConflict is for a context that has another version than the caller expects.
	ReasonVersionConflict = "VERSION_CONFLICT"
	// ReasonNotRegistered is for an agent without a registration, or whose lease is over.
	ReasonNotRegistered = "NOT_REGISTERED"
	// ReasonUnreachable is for a registered agent that cannot be asked, and for one whose task
	// another host works on.
	ReasonUnreachable = "UNREACHABLE"
)

// ownStatuses are the HTTP statuses of reasons that have another one than their code.
var ownStatuses = map[string]int{
	ReasonForbidden: http.StatusForbidden, ReasonInternal: http.StatusInternalServerError,
	ReasonConflict: http.StatusConflict, ReasonVersionConflict: http.StatusConflict, ReasonTooLarge: http.StatusRequestEntityTooLarge,
}

// Fault is why a message is refused, as its sender may see it.
type Fault struct {
	Code   Code
	Reason string // in details, empty where the code is all
	Text   string
	// Details are more members of details.
	Details map[string]any
	// RetryAfter is when the same message may be taken; 0 for never.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Fault) Error() string { return f.Text }

// Cause is the code, or the reason, in the word of the host's logs; empty for a message that is malformed.
func (f *Fault) Cause() string {
	switch f.Code {
	case AgentNotFound, CapabilityNotFound, ContextNotFound:
		return "not_found"
	case AuthenticationFailed:
		if f.Reason == ReasonForbidden {
			return "role"
		}
		return "credentials"
	case RateLimitExceeded:
		return "rate"
	case InsufficientResources:
		return "limit"
	}
	if f.Reason == ReasonConflict {
		return "conflict"
	}
	return ""
}

// Status is the HTTP status of the error.
func (f *Fault) Status() int {
	if own := ownStatuses[f.Reason]; own != 0 {
		return own
	}
	return statuses[f.Code]
}

// Faultf returns a fault.
func Faultf(code Code, reason, format string, args ...any) *Fault {
	return &Fault{Code: code, Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// ErrorBody is the error of a payload.
type ErrorBody struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Body is the error as a payload has it.
func (f *Fault) Body() ErrorBody {
	details := map[string]any{}
	for name, value := range f.Details {
		details[name] = value
	}
	if f.Reason != "" {
		details["reason"] = f.Reason
	}
	if f.RetryAfter > 0 {
		details["retry_after_ms"] = f.RetryAfter.Milliseconds()
	}
	return ErrorBody{Code: f.Code, Message: f.Text, Details: details}
}

// Payload is the payload of an error message.
func (f *Fault) Payload() any { return map[string]any{"error": f.Body()} }
