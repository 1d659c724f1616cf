package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Error is a refusal by the host.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Detail is the host's reason.
	Detail string
	// RequestID finds the call in the host's log. It may be empty.
	RequestID string
}

// Error gives the reason, the status and the request.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d %s", e.Detail, e.Status, http.StatusText(e.Status))
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

// passing reports whether the refusal may be another one, or none, a little
// later: the host stops or is overloaded, or a proxy has not reached it.
func (e *Error) passing() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Unreachable: no host answered.
type Unreachable struct {
	URL string
	// Err is the last failure.
	Err error
}

// Error names the host and the failure.
func (e *Unreachable) Error() string { return fmt.Sprintf("no answer from %s: %v", e.URL, e.Err) }

// Unwrap returns the last failure.
func (e *Unreachable) Unwrap() error { return e.Err }

// ErrTooLarge is wrapped by the error of an answer or event that exceeds its
// cap.
var ErrTooLarge = errors.New("too large")

// ErrNotMAIL is wrapped by the error of an answer that no MAIL host gives.
var ErrNotMAIL = errors.New("not an answer of a MAIL host")

// ErrSpeaksTLS is wrapped by the error of a call in the clear to a host with TLS.
var ErrSpeaksTLS = errors.New("it speaks TLS: use an https URL")

// wantsTLS recognizes the answer of a server with TLS to a call in the clear. It is
// made before any handler is asked, so it is no JSON.
func wantsTLS(rsp *http.Response, detail string) bool {
	return rsp.StatusCode == http.StatusBadRequest && jsonType(rsp) != nil &&
		strings.Contains(detail, "HTTP request") && strings.Contains(detail, "HTTPS")
}

// maxDetail bounds what is kept of an error's body.
const maxDetail = 8 << 10

// refusal reads the answer of a call that was refused.
func refusal(rsp *http.Response) *Error {
	e := &Error{Status: rsp.StatusCode, RequestID: rsp.Header.Get("X-Request-Id")}
	raw, err := io.ReadAll(io.LimitReader(rsp.Body, maxDetail+1))
	var body struct {
		Detail json.RawMessage `json:"detail"`
	}
	switch {
	case err != nil:
		e.Detail = "the reason could not be read: " + err.Error()
	case len(raw) > maxDetail:
		e.Detail = strings.ToValidUTF8(string(raw[:maxDetail]), "") + "… (what follows is left out)"
	case json.Unmarshal(raw, &body) == nil && len(body.Detail) > 0:
		if json.Unmarshal(body.Detail, &e.Detail) != nil {
			e.Detail = string(body.Detail)
		}
	case utf8.Valid(raw):
		e.Detail = strings.TrimSpace(string(raw))
	}
	if e.Detail == "" {
		e.Detail = "refused without a reason"
	}
	return e
}
