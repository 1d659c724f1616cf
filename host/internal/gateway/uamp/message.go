package uamp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
)

// serveMessage takes one envelope (U-050).
func (g *Gateway) serveMessage(w http.ResponseWriter, r *http.Request) {
	c, ok := g.identify(w, r)
	if !ok {
		return
	}
	text, err := wire.ReadBody(http.MaxBytesReader(w, r.Body, g.MaxBody), r.ContentLength)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		err = g.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = envelope.Faultf(envelope.Malformed, "the request's body breaks off after %d bytes, and its Content-Length is %d", len(text), r.ContentLength)
	case err != nil:
		return // the host answers for a body that it could not read
	case len(text) == 0:
		err = envelope.Faultf(envelope.Malformed, "the request has no body: the envelope is missing")
	default:
		err = checkMediaType(r.Header, g.Strict)
	}
	s, x, err := g.receive(r.Context(), c, text, err)
	g.record(c, s, text, x, err)
	if err != nil {
		g.refuse(w, c, s.Envelope, err)
		return
	}
	if x.stream != "" {
		w.Header().Set("Location", streamPath+url.PathEscape(g.nameQUICStream(w, r, s.Envelope, x.stream)))
	}
	g.writeAccepted(w, s.Envelope, x)
}

// identify finds the caller of a request of HTTP/2.
func (g *Gateway) identify(w http.ResponseWriter, r *http.Request) (c gateway.Caller, ok bool) {
	if r.TLS != nil && r.ProtoMajor < 2 {
		http.Error(w, "UAMP is served over HTTP/2: offer h2 in ALPN", http.StatusHTTPVersionNotSupported)
		return c, false
	}
	return g.identifyCaller(w, r)
}

// identifyCaller finds the caller. Who shows nothing that counts gets no signed answer.
func (g *Gateway) identifyCaller(w http.ResponseWriter, r *http.Request) (c gateway.Caller, ok bool) {
	c, err := g.Runtime.Identify(r)
	switch {
	case errors.Is(err, gateway.ErrBusy):
		g.refuseUnsigned(w, g.faultOf(err))
		return c, false
	case err != nil:
		f, challenge := credentialFault(r)
		w.Header().Set("WWW-Authenticate", challenge)
		g.refuseUnsigned(w, f)
		return c, false
	}
	return c, true
}

// received is what became of an envelope.
type received struct {
	gateway.Exchange
	// stream is the id of the stream with its answer, empty for none.
	stream string
	// missing are the recipients that there are not for the caller.
	missing []string
}

// receive reads an envelope, proves it and does what it wants. unread is why its text cannot
// be read, nil if it can.
func (g *Gateway) receive(ctx context.Context, c gateway.Caller, text []byte, unread error) (s envelope.Signed, x received, err error) {
	if unread != nil {
		return s, x, unread
	}
	if s, err = g.read(ctx, text); err != nil {
		return s, x, err
	}
	if err = g.proof.Check(ctx, c, s); err != nil {
		return s, x, err
	}
	if err = g.checkTime(ctx, c, s.Envelope); err != nil {
		return s, x, err
	}
	x, err = g.accept(ctx, c, s)
	return s, x, err
}

// tooLarge is why a message that is not whole is refused.
func (g *Gateway) tooLarge() *envelope.Fault {
	return &envelope.Fault{Code: envelope.TooLarge, Text: fmt.Sprintf("the envelope has more than %d bytes, max_body of [gateways.uamp]", g.MaxBody)}
}

// checkMediaType refuses a body that is said to be something else than an envelope in UTF-8
// (U-015), or to be compressed: an envelope compresses its own content.
func checkMediaType(h http.Header, strict bool) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return envelope.Faultf(envelope.Unsupported, "the Content-Encoding is %.40q: send the envelope without one, and compress body.content", coding)
	}
	text := h.Get("Content-Type")
	if text == "" && !strict {
		return nil
	}
	kind, params, err := mime.ParseMediaType(text)
	isKind := kind == envelope.MediaType || kind == "application/json" && !strict
	if version, charset := cmp.Or(params["v"], "1"), cmp.Or(params["charset"], "utf-8"); err != nil || !isKind || version != "1" || !strings.EqualFold(charset, "utf-8") {
		return envelope.Faultf(envelope.Unsupported, "the Content-Type is not %s;v=1", envelope.MediaType)
	}
	return nil
}

// read reads an envelope, a long one when there is a place.
func (g *Gateway) read(ctx context.Context, text []byte) (envelope.Signed, error) {
	release, err := g.large.Acquire(ctx, len(text))
	if err != nil {
		return envelope.Signed{}, err
	}
	defer release()
	return g.reader.Read(text)
}

// checkTime refuses an envelope of another time, unless it was taken before (U-016).
func (g *Gateway) checkTime(ctx context.Context, c gateway.Caller, e envelope.Envelope) error {
	stale := envelope.CheckTime(e.Time, time.Now(), g.ClockSkew)
	if stale == nil {
		return nil
	}
	_, err := g.Runtime.Find(ctx, c, string(e.ID))
	if errors.Is(err, gateway.ErrUnknown) {
		return stale
	}
	return err
}

// record writes what became of an envelope into the logs.
func (g *Gateway) record(c gateway.Caller, s envelope.Signed, text []byte, x received, err error) {
	wire.Yield(len(text))
	e := gateway.Event{Caller: c, Foreign: s.ID.String(), Type: string(s.Intent), Text: text, Task: x.Task.Task}
	g.Runtime.Record(e.WithOutcome(x.Duplicate, err))
}
