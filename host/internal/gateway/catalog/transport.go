package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/turn/egress"
)

// Limits of calls of partners.
const (
	idlePerHost    = 16               // connections that are kept
	connectTimeout = 10 * time.Second // look-up of the name, TCP and TLS
	streamBodies   = 64               // an event stream may be as long as so many bodies
)

// errTokenRedirect is returned for a request for a token. Messages wait for one.
var errTokenRedirect = errors.New("it redirects, which is not followed; write where it is into token_url")

func newEgress(network func(*egress.Options)) *egress.Client {
	o := egress.Options{ConnectTimeout: connectTimeout, KeepAlive: egress.KeepAlive{MaxIdlePerHost: idlePerHost}}
	if network != nil {
		network(&o)
	}
	return egress.New(o)
}

// transport sends requests to one partner: it adds the credential, ends what takes too
// long, and bounds the answers. A connection that a response hands over has neither bound, nor
// has a call of gRPC with a stream of messages after its response has begun.
type transport struct {
	next    http.RoundTripper
	header  http.Header
	tokens  *tokenSource  // nil where header has the credential
	timeout time.Duration // of a request and its whole answer, 0 for none
	maxBody int64         // bytes
	// maxCall bounds the answer to a call of gRPC, in bytes, 0 for maxBody.
	maxCall int64
	// remedy ends the refusal of a larger answer, empty where maxBody is no setting.
	remedy string
}

// client returns a client that follows no redirect.
func (t *transport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return gateway.ErrRedirect }}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if isStreamingCall(req) {
		return t.beginCall(req)
	}
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if t.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
	}
	req = req.Clone(ctx)
	resp, err := t.send(req)
	if err != nil {
		cancel()
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // it is the caller's from here on
		cancel()
		return resp, nil
	}
	most := t.maxBody
	if t.maxCall > 0 && isCall(req) {
		most = t.maxCall
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isStream := kind == "text/event-stream"
	if isStream {
		most *= streamBodies
	}
	resp.Body = &boundedBody{body: resp.Body, left: most, done: cancel, tooLarge: t.tooLarge(most, isStream)}
	return resp, nil
}

// send sends a request with the credential.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	maps.Copy(req.Header, t.header)
	if t.tokens != nil {
		return t.tokens.roundTrip(t.next, req)
	}
	return t.next.RoundTrip(req)
}

// tooLarge is the error of an answer of more bytes: another attempt would have it again, but
// for a stream, which may go on where it ended.
func (t *transport) tooLarge(most int64, isStream bool) error {
	text := fmt.Sprintf("the answer is too large: more than %d bytes", most)
	if t.remedy != "" {
		text += "; " + t.remedy
	}
	if isStream {
		return errors.New(text)
	}
	return gateway.Refuse("%s", text)
}

// isStreamingCall reports whether a request is a call of gRPC that sends beside its response.
func isStreamingCall(req *http.Request) bool {
	return req.ContentLength < 0 && isCall(req)
}

// isCall reports whether a request is a call of gRPC.
func isCall(req *http.Request) bool {
	return strings.HasPrefix(req.Header.Get("Content-Type"), "application/grpc")
}

// callRoom is what the answer to a call has besides a message and its members, in bytes.
const callRoom = 32 << 10

// byKind sends calls of gRPC by HTTP/2, and other requests as they are sent without it.
type byKind struct{ calls, others http.RoundTripper }

// newByKind returns the transports of a policy that does not choose HTTP/2.
func newByKind(client *egress.Client, policy egress.Policy) byKind {
	others := client.Transport(policy)
	policy.HTTP2, policy.OfferHTTP2 = true, false
	return byKind{client.Transport(policy), others}
}

// RoundTrip implements [http.RoundTripper].
func (b byKind) RoundTrip(req *http.Request) (*http.Response, error) {
	if isCall(req) {
		return b.calls.RoundTrip(req)
	}
	return b.others.RoundTrip(req)
}

// beginCall sends a streaming call, which its context ends. The timeout bounds the wait for the
// response.
func (t *transport) beginCall(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	if t.timeout > 0 {
		late := time.AfterFunc(t.timeout, func() { cancel(context.DeadlineExceeded) })
		defer late.Stop()
	}
	req = req.Clone(ctx)
	resp, err := t.send(req)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	resp.Body = &callBody{resp.Body, cancel}
	return resp, nil
}

// callBody is the response of a streaming call.
type callBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements [io.Closer]. It ends the call.
func (b *callBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// boundedBody is the body of an answer, up to so many bytes.
type boundedBody struct {
	body     io.ReadCloser
	left     int64
	done     context.CancelFunc
	tooLarge error // of the byte beyond the limit
}

// Read implements [io.Reader]. One byte beyond the limit is an error.
func (b *boundedBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		n, b.left = int(b.left), 0
		return n, b.tooLarge
	}
	b.left -= int64(n)
	return n, err
}

// Close implements [io.Closer].
func (b *boundedBody) Close() error {
	defer b.done()
	return b.body.Close()
}
