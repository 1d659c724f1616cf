package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
)

// call is one request of the API, which may be sent several times.
type call struct {
	method string
	path   string // with its query
	header http.Header
	body   []byte
	// again says of a call that changes something, and carries no key, that
	// doing it twice is doing it once.
	again bool
}

// safe reports whether the host may see the call twice.
func (k call) safe() bool {
	return k.method == http.MethodGet || k.again || k.header.Get(keyHeader) != ""
}

// keyHeader makes the host take a repeat for what it is.
const keyHeader = "Idempotency-Key"

// answer is what a call came back with, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do performs a call that is answered in JSON and decodes the answer into out.
func (c *Client) do(ctx context.Context, k call, out any) (http.Header, error) {
	var got answer
	err := c.retry(ctx, k.safe(), func() error {
		var err error
		got, err = c.attempt(ctx, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", k.method, k.path, ErrNotMAIL, err)
	}
	return got.header, nil
}

// attempt sends a call once and reads its whole answer.
func (c *Client) attempt(ctx context.Context, k call) (answer, error) {
	rsp, err := c.send(ctx, k)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = rsp.Body.Close() }()
	if err := jsonType(rsp); err != nil {
		return answer{}, fmt.Errorf("%s %s: %w", k.method, k.path, err)
	}
	body, err := io.ReadAll(io.LimitReader(rsp.Body, c.opt.MaxResponse+1))
	switch {
	case err != nil:
		return answer{}, &lost{err}
	case int64(len(body)) > c.opt.MaxResponse:
		return answer{}, fmt.Errorf("%s %s: %w: the answer has more than %d bytes", k.method, k.path, ErrTooLarge, c.opt.MaxResponse)
	}
	return answer{rsp.StatusCode, rsp.Header, body}, nil
}

// send sends a call once. The answer's body is the caller's to close; its
// status is 2xx.
func (c *Client) send(ctx context.Context, k call) (*http.Response, error) {
	rsp, err := c.request(ctx, k)
	if err != nil || rsp.StatusCode/100 == 2 {
		return rsp, err
	}
	defer func() { _ = rsp.Body.Close() }()
	e := refusal(rsp)
	if wantsTLS(rsp, e.Detail) {
		return nil, &lost{fmt.Errorf("%w, %s", ErrSpeaksTLS, strings.Replace(c.base, "http:", "https:", 1))}
	}
	return nil, &refused{e, rsp.Header.Get("Retry-After")}
}

// request sends a call once, for an answer of any status.
func (c *Client) request(ctx context.Context, k call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, k.method, c.base+k.path, bytes.NewReader(k.body))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	if c.opt.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	c.addLook(req, k)
	rsp, err := c.http.Do(req)
	if err != nil {
		return nil, &lost{err}
	}
	c.reached.Store(true)
	return rsp, nil
}

func jsonType(rsp *http.Response) error {
	kind, _, err := mime.ParseMediaType(rsp.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fmt.Errorf("%w: its content type is %q", ErrNotMAIL, rsp.Header.Get("Content-Type"))
	}
	return nil
}

// lost is a connection that failed before the whole answer was here.
type lost struct{ error }

func (e *lost) Unwrap() error { return e.error }

// dialling reports whether the connection was never made.
func (e *lost) dialling() bool {
	var op *net.OpError
	return errors.As(e.error, &op) && op.Op == "dial"
}

// refused is an answer that is no success, and when to ask again.
type refused struct {
	cause *Error
	after string
}

func (e *refused) Error() string { return e.cause.Error() }
func (e *refused) Unwrap() error { return e.cause }

// errGoingDown is the answer of a host that stops: the task goes on at its next
// start, and the same key attaches to it then.
var errGoingDown = errors.New("the host is shutting down; the task goes on at its next start")

// errNotYet is the answer of a host that does not hold a call any longer.
var errNotYet = errors.New("the task has not ended yet")

// passing reports whether a repeat may cure a failure, and the least pause before it.
func (c *Client) passing(err error) (pause time.Duration, ok bool) {
	var conn *lost
	var refusal *refused
	switch {
	case errors.Is(err, errGoingDown), errors.Is(err, errNotYet):
		return 0, true
	case errors.As(err, &conn) && Untrusted(conn):
		return 0, false
	case errors.As(err, &conn):
		return 0, !conn.dialling() || c.reached.Load()
	case errors.As(err, &refusal) && c.opt.NoWait && refusal.cause.Status == http.StatusTooManyRequests:
		return 0, false
	case errors.As(err, &refusal):
		return retryAfter(refusal.after, time.Now()), refusal.cause.passing()
	}
	return 0, false
}

// begun reports whether the host may have done something of a call that failed.
func begun(err error) bool {
	var conn *lost
	var refusal *refused
	switch {
	case errors.As(err, &conn):
		return !conn.dialling()
	case errors.As(err, &refusal):
		return refusal.cause.Status != http.StatusTooManyRequests
	}
	return true
}
