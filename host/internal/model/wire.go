package model

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/egress"
)

// Bounds of what a provider sends, before anything is read into it.
const (
	maxBody      = 16 << 20
	maxErrorBody = 64 << 10
	// maxMarks is how many parts a document may have, which is an answer or one of
	// its events. The client libraries make a thousand bytes of the smallest.
	maxMarks = 16 << 10
)

// eventStream is the type of an answer that begins with its first event: its status
// comes before the model does anything.
const eventStream = "text/event-stream"

var (
	errTimeout = errors.New("the call took too long")
	errIdle    = errors.New("the provider fell silent")
)

// wire carries the requests of one try. It bounds the answer in bytes and in
// silence, and turns a status that is none of success into an [*Error]: the
// client libraries would keep the whole body, and the request with its key.
type wire struct {
	next   http.RoundTripper
	idle   time.Duration
	cancel context.CancelCauseFunc
	scrub  egress.Scrubber
	key    bool
	into   *answer
	// sent says that the provider has the request and did not refuse it, streams
	// that its answer calls itself a stream of events.
	sent, streams bool
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		var unsent *abi.Error
		w.sent = !errors.As(err, &unsent)
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer func() { _ = resp.Body.Close() }()
		return nil, w.refused(resp)
	}
	w.streams = strings.HasPrefix(resp.Header.Get("Content-Type"), eventStream)
	w.sent, w.into.begun = true, !w.streams
	b := &body{ReadCloser: resp.Body, left: maxBody, w: w}
	b.silence = time.AfterFunc(w.idle, func() { w.cancel(errIdle) })
	b.silence.Stop()
	resp.Body = b
	return resp, nil
}

// body is an answer on its way.
type body struct {
	io.ReadCloser
	w       *wire
	left    int
	marks   marks
	silence *time.Timer
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fault(TooLarge, "the provider's answer has more than %d bytes", maxBody)
	}
	b.silence.Reset(b.w.idle)
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.silence.Stop()
	b.left -= n
	if b.marks.see(p[:n], b.w.streams); b.marks.most > maxMarks {
		return 0, fault(TooLarge, "the provider's answer has a document of more than %d parts", maxMarks)
	}
	return n, err
}

func (b *body) Close() error {
	b.silence.Stop()
	return b.ReadCloser.Close()
}

// refused reads an answer without success.
func (w *wire) refused(resp *http.Response) *Error {
	if resp.StatusCode/100 == 3 {
		return &Error{Kind: Auth, Status: resp.StatusCode, Message: "the provider redirects, and neither prompt nor key follows; put its address into base_url"}
	}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	said := readComplaint(raw)
	e := said.fault(resp.StatusCode, w.key, w.scrub)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// timedOut reports whether the provider had the request until nobody would wait
// longer: it may have worked on it.
func (w *wire) timedOut(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return w.sent && (errors.Is(cause, errTimeout) || errors.Is(cause, errIdle))
}

// because turns what a try ended with into an [*Error], or into why the caller
// is done. What libraries say of a request may quote it, so it is not repeated.
func (r *remote) because(ctx context.Context, a *answer, err error) error {
	var own *Error
	var denied *abi.Error
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	cause := context.Cause(ctx)
	switch {
	case a.stopped != nil:
		return a.stopped
	case errors.Is(cause, errTimeout):
		return fault(Unavailable, "no whole answer within %s; raise timeout if the model needs longer", r.s.Timeout)
	case errors.Is(cause, errIdle):
		return fault(Unavailable, "the provider said nothing for %s in the middle of its answer", r.s.Idle)
	case cause != nil:
		return cause
	case errors.As(err, &own):
		return own
	case errors.As(err, &denied) && denied.Reason == egress.ReasonAddress:
		return fault(Auth, "base_url leads to an address that is not public; set allow_private = true if that is meant")
	case errors.As(err, &denied) && (denied.Code == abi.CodeDenied || denied.Code == abi.CodeInvalid):
		return fault(Auth, "base_url is refused: %s", denied.Message)
	case errors.As(err, &denied):
		return fault(Unavailable, "the provider cannot be reached at base_url %q: %s", r.s.BaseURL, denied.Message)
	case errors.As(err, &syntax), errors.As(err, &mistyped):
		return fault(Malformed, "the answer is not in the format of the provider %s", r.s.Provider)
	case errors.Is(err, errUnread):
		return fault(Malformed, "the answer is no JSON; base_url may lead elsewhere than to the provider %s", r.s.Provider)
	}
	return fault(Unavailable, "the connection broke before the answer was whole")
}

var errUnread = errors.New("no JSON")
