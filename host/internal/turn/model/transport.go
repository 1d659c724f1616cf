package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// Limits of a provider's HTTP response, checked before it is decoded.
const (
	maxBody      = 16 << 20
	maxErrorBody = 64 << 10
	// maxValues bounds the values in a JSON document, which is an answer or one event. The
	// client libraries allocate about a thousand bytes for the smallest value.
	maxValues = 16 << 10
)

// eventStream is the media type of a streamed answer. Its status comes before the model
// starts to work.
const eventStream = "text/event-stream"

var (
	errTimeout = errors.New("the call took too long")
	errIdle    = errors.New("the provider fell silent")
)

// attemptTransport carries the requests of one attempt. It bounds the size of the answer
// and its pauses, and turns an error status into an [*Error]: the client libraries would
// keep the whole body, and the request with its key.
type attemptTransport struct {
	next        http.RoundTripper
	idleTimeout time.Duration
	cancel      context.CancelCauseFunc
	scrub       *egress.Scrubber
	hasKey      bool
	into        *answer
	// sent is set if the provider has the request and did not refuse it, streams if the
	// answer is an event stream.
	sent, streams bool
}

func (w *attemptTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		var unsent *abi.Error
		w.sent = !errors.As(err, &unsent)
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer func() { _ = resp.Body.Close() }()
		return nil, w.statusError(resp)
	}
	w.streams = strings.HasPrefix(resp.Header.Get("Content-Type"), eventStream)
	w.sent, w.into.billable = true, !w.streams
	b := &boundedBody{ReadCloser: resp.Body, remaining: maxBody, transport: w}
	b.idleTimer = time.AfterFunc(w.idleTimeout, func() { w.cancel(errIdle) })
	b.idleTimer.Stop()
	resp.Body = b
	return resp, nil
}

// boundedBody is the body of a response.
type boundedBody struct {
	io.ReadCloser
	transport *attemptTransport
	remaining int
	values    valueCounter
	idleTimer *time.Timer
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, newError(TooLarge, "the provider's answer has more than %d bytes", maxBody)
	}
	b.idleTimer.Reset(b.transport.idleTimeout)
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.idleTimer.Stop()
	b.remaining -= n
	if b.values.add(p[:n], b.transport.streams); b.values.most > maxValues {
		return 0, newError(TooLarge, "the provider's answer has a document of more than %d parts", maxValues)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.idleTimer.Stop()
	return b.ReadCloser.Close()
}

// statusError reads a response with an error status.
func (w *attemptTransport) statusError(resp *http.Response) *Error {
	if resp.StatusCode/100 == 3 {
		return &Error{Kind: Auth, Status: resp.StatusCode, Short: "redirect", Message: "the provider redirects, and neither prompt nor key follows; put its address into base_url"}
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	said := parseProviderError(raw)
	e := said.toError(resp.StatusCode, w.hasKey, w.scrub)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// timedOut reports whether the provider had the request when a timeout ended the attempt:
// it may have worked on it.
func (w *attemptTransport) timedOut(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return w.sent && (errors.Is(cause, errTimeout) || errors.Is(cause, errIdle))
}

// attemptError converts the error of an attempt into an [*Error], or into the reason why
// the caller's context is done. Errors of libraries may quote the request, so their text
// is dropped.
func (r *remoteModel) attemptError(ctx context.Context, a *answer, err error) error {
	var own *Error
	var denied *abi.Error
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	cause := context.Cause(ctx)
	switch {
	case a.emitErr != nil:
		return a.emitErr
	case errors.Is(cause, errTimeout):
		return newError(Unavailable, "no whole answer within %s; raise timeout if the model needs longer", r.spec.Timeout).inShort("no whole answer in time")
	case errors.Is(cause, errIdle):
		return newError(Unavailable, "the provider said nothing for %s in the middle of its answer", r.spec.IdleTimeout).inShort("silence in the middle of an answer")
	case cause != nil:
		return cause
	case errors.As(err, &own):
		return own
	case errors.As(err, &denied) && denied.Reason == egress.ReasonAddress:
		return newError(Auth, "base_url leads to an address that is not public; set allow_private = true if that is meant").inShort("base_url is not public")
	case errors.As(err, &denied) && (denied.Code == abi.CodeDenied || denied.Code == abi.CodeInvalid):
		return newError(Auth, "base_url is refused: %s", denied.Message).inShort("base_url refused")
	case errors.As(err, &denied):
		return newError(Unavailable, "the provider cannot be reached at base_url %q: %s", r.spec.BaseURL, denied.Message).inShort(unreachable(denied.Reason))
	case errors.As(err, &syntax), errors.As(err, &mistyped):
		return newError(Malformed, "the answer is not in the format of the provider %s", r.spec.Provider)
	case errors.Is(err, errNotJSON):
		return newError(Malformed, "the answer is no JSON; base_url may lead elsewhere than to the provider %s", r.spec.Provider)
	}
	return newError(Unavailable, "the connection broke before the answer was whole").inShort("connection broken")
}

// unreachable returns in a few words why a request did not reach a provider.
func unreachable(reason string) string {
	return cmp.Or(map[string]string{
		egress.ReasonDNS: "name not resolved", egress.ReasonRefused: "connection refused", egress.ReasonTLS: "no TLS",
		egress.ReasonConnection: "connection broken", egress.ReasonProtocol: "no HTTP", egress.ReasonTimeout: "timeout",
	}[reason], "not reachable")
}

var errNotJSON = errors.New("no JSON")
