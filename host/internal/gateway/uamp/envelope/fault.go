package envelope

import (
	"fmt"
	"net/http"
	"time"
)

// Code is why a message was not taken.
type Code string

// The codes of the document (U-104), and ours for what it has none for (U-105).
const (
	Unauthenticated Code = "4.01"
	Unauthorized    Code = "4.03"
	MissingSeq      Code = "4.09"
	TooLarge        Code = "4.13"
	Busy            Code = "5.04"

	Malformed        Code = "4.00"
	UnknownRecipient Code = "4.04"
	TimedOut         Code = "4.08"
	Unsupported      Code = "4.15"
	IllegalState     Code = "4.22"
	TooMany          Code = "4.29"
	Internal         Code = "5.00"
)

// statuses are the codes with their HTTP statuses; those with retry may succeed later.
var statuses = map[Code]struct {
	status int
	retry  bool
}{
	Unauthenticated:  {http.StatusUnauthorized, false},
	Unauthorized:     {http.StatusForbidden, false},
	MissingSeq:       {http.StatusConflict, true},
	TooLarge:         {http.StatusRequestEntityTooLarge, false},
	Busy:             {http.StatusGatewayTimeout, true},
	Malformed:        {http.StatusBadRequest, false},
	UnknownRecipient: {http.StatusNotFound, false},
	TimedOut:         {http.StatusRequestTimeout, false},
	Unsupported:      {http.StatusUnsupportedMediaType, false},
	IllegalState:     {http.StatusUnprocessableEntity, false},
	TooMany:          {http.StatusTooManyRequests, true},
	Internal:         {http.StatusInternalServerError, true},
}

// Status is the HTTP status of a code.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s.status
	}
	return http.StatusInternalServerError
}

// Retry reports whether the same message may be taken later.
func (c Code) Retry() bool { return statuses[c].retry }

// Fault is why a message is refused, as its sender may see it.
type Fault struct {
	Code Code
	Text string
	// RetryAfter is when another attempt may succeed, 0 if that is not known.
	RetryAfter time.Duration
	Details    map[string]any
}

// Error implements error.
func (f *Fault) Error() string { return f.Text }

// Cause is the code in the word of the host's logs; empty for an envelope that is malformed.
func (f *Fault) Cause() string {
	switch f.Code {
	case Unauthenticated:
		return "credentials"
	case Unauthorized:
		return "role"
	case UnknownRecipient:
		return "not_found"
	case MissingSeq, IllegalState:
		return "conflict"
	case TooLarge:
		return "too_large"
	case TooMany:
		return "rate"
	case Busy:
		return "limit"
	case Internal:
		return "unavailable"
	}
	return ""
}

// Faultf returns a fault of a code.
func Faultf(code Code, format string, args ...any) error {
	return &Fault{Code: code, Text: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error { return Faultf(Malformed, format, args...) }
