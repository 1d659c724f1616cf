package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// networkError is the error of a request whose answer did not come. The next one may get its
// answer.
type networkError struct {
	cause error
	// unsent is set if the server did not take the request. wait is the pause that it wants
	// before the next one, 0 for none.
	unsent bool
	wait   time.Duration
}

// Error implements error.
func (e *networkError) Error() string { return e.cause.Error() }

// Unwrap returns the error of package egress or of the HTTP client.
func (e *networkError) Unwrap() error { return e.cause }

// newNetworkError returns the error of a round trip as a networkError if it is one. Package egress
// has UNAVAILABLE for a connection that could not be opened.
func newNetworkError(err error) error {
	fault := (*abi.Error)(nil)
	switch known := errors.As(err, &fault); {
	case !known:
		return &networkError{cause: err}
	case fault.Code == abi.CodeUnavailable:
		return &networkError{cause: err, unsent: true}
	}
	return err
}

// statusError returns the error of a response with a status by which a server or its proxy says
// that it cannot answer, nil for other responses. Such a response is closed.
func statusError(resp *http.Response) error {
	e := &networkError{
		cause: fmt.Errorf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)),
		wait:  egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		e.unsent = true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
	default:
		return nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxRefusal)
	_ = resp.Body.Close()
	return e
}

// maxRefusal is how much of the body of such a response is read, in bytes, so that its connection
// is used again.
const maxRefusal = 4 << 10
