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
// that it cannot answer, or not with this token; nil for other responses, as 403, whose body may
// say what the tool has refused. Such a response is closed.
func (r *httpTransport) statusError(resp *http.Response) (err error) {
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	network := &networkError{cause: errors.New("it answers " + status), wait: egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		network.unsent = true
		err = network
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		err = network
	case http.StatusUnauthorized:
		err = r.tokenError(status)
	default:
		return nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxRefusal)
	_ = resp.Body.Close()
	return err
}

// tokenError says what to change where a server wants another token
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization#error-handling).
func (r *httpTransport) tokenError(status string) error {
	if r.token == "" {
		return fmt.Errorf("it answers %s, and %s has no auth_token: set it to a token of this server", status, r.table)
	}
	return fmt.Errorf("it refuses the token with %s: set auth_token in %s to a token that it takes", status, r.table)
}

// maxRefusal is how much of the body of such a response is read, in bytes, so that its connection
// is used again.
const maxRefusal = 4 << 10
