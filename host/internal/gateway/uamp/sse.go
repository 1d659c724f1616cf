package uamp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// streamPing is the time between two comments on a stream that waits.
const streamPing = 15 * time.Second

// serveStream serves the deltas of a stream as server-sent events (U-051). A response has
// as many as the window allows: the next one's Last-Event-ID acknowledges them (U-065,
// https://html.spec.whatwg.org/multipage/server-sent-events.html#the-last-event-id-header).
func (g *Gateway) serveStream(w http.ResponseWriter, r *http.Request) {
	c, ok := g.identify(w, r)
	if !ok {
		return
	}
	x, n, from, err := g.openRequested(r, c)
	if err != nil {
		g.refuseUnsigned(w, g.faultOf(err))
		return
	}
	e := &eventWriter{w: w, out: http.NewResponseController(w), from: from, window: stream.NewWindow(min(n.Window, g.MaxWindow), from)}
	switch err := g.writeStream(r.Context(), x, n, e); {
	case e.begun && errors.Is(err, gateway.ErrStreamLost):
		e.fail(streamName(x, n), &envelope.Fault{Code: envelope.Internal, Text: gateway.ErrStreamLost.Error()})
	case e.begun && errors.Is(err, gateway.ErrDenied) && r.Context().Err() == nil:
		e.fail(streamName(x, n), g.faultOf(err))
	case e.begun:
		// the reader opens another one after an error
	case err == nil && e.seen < from:
		g.refuseUnsigned(w, &envelope.Fault{Code: envelope.MissingSeq, Text: "Last-Event-ID is that of no delta which was sent"})
	case err == nil:
		w.WriteHeader(http.StatusNoContent) // which ends an EventSource
	case r.Context().Err() != nil: // the caller has left, or may not call any more
		g.refuseUnsigned(w, &envelope.Fault{Code: envelope.Unauthenticated, Text: "the credential is not valid any more"})
	default:
		g.refuseUnsigned(w, g.faultOf(err))
	}
}

// openRequested finds the stream of a request, and the number of the first delta that is
// wanted.
func (g *Gateway) openRequested(r *http.Request, c gateway.Caller) (x gateway.Exchange, n note, from int, err error) {
	if from, err = firstDelta(r); err != nil {
		return x, n, 0, err
	}
	name, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), streamPath))
	if err != nil {
		return x, n, 0, unknownStream
	}
	x, n, err = g.openStream(r.Context(), c, name)
	if alias, ok := quicAlias(r.Context(), name); ok && g.isNumbered(alias) {
		n.Stream = name // its deltas have the number, too
	}
	return x, n, from, err
}

// openStream finds a stream of the caller.
func (g *Gateway) openStream(ctx context.Context, c gateway.Caller, name string) (x gateway.Exchange, n note, err error) {
	if c.IsUser() {
		return x, n, envelope.Faultf(envelope.Unauthorized, "UAMP is for agents: show a credential of role agent")
	}
	if x, err = g.findStream(ctx, c, name); err == nil {
		n, err = readNote(x)
	}
	return x, n, err
}

// firstDelta is the number after the last delta that the reader has.
func firstDelta(r *http.Request) (int, error) {
	add, text := 1, r.Header.Get("Last-Event-ID")
	if text == "" {
		add, text = 0, r.URL.Query().Get("from")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, envelope.Faultf(envelope.Malformed, "Last-Event-ID and from are numbers of deltas")
	}
	return int(n) + add, nil
}

// errWindow ends a response whose window is used up.
var errWindow = errors.New("the window is used up")

// deltaWriter writes the deltas of one answer to a reader.
type deltaWriter interface {
	// write writes a delta that the reader does not have. It fails with errWindow after the
	// last one that the window lets through.
	write(envelope.Delta) error
	progress(told map[string]any)
	// comment shows a reader that waits that the stream is open.
	comment(text string)
}

// writeStream writes the deltas of an exchange until the last one, or the window's end.
func (g *Gateway) writeStream(ctx context.Context, x gateway.Exchange, n note, e deltaWriter) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, d, err := g.followDeltas(ctx, x, n, streamName(x, n))
	if err != nil {
		return err
	}
	pieces, done := make(chan gateway.Piece), make(chan error, 1)
	defer func() {
		stop()
		<-done
		_ = s.Close()
	}()
	go func() { done <- forward(ctx, s, pieces); close(done) }()
	ping := time.NewTicker(streamPing)
	defer ping.Stop()
	if d.live {
		e.comment("") // the reader sees that it is open
	}
	for {
		select {
		case p := <-pieces:
			if d.isAside(p) {
				e.progress(d.progress(p))
			}
			if last, err := d.add(ctx, p, e.write); last || err != nil {
				return err
			}
		case err := <-done:
			return err
		case <-ping.C:
			e.comment("")
		case <-g.stopped:
			return gateway.ErrDraining
		}
	}
}

// streamName is the id of the stream of an exchange.
func streamName(x gateway.Exchange, n note) string {
	return streamOf(envelope.Envelope{ID: envelope.ID(x.Message()), Stream: n.Stream})
}

// forward reads a stream into a channel until ctx ends.
func forward(ctx context.Context, s gateway.Stream, pieces chan<- gateway.Piece) error {
	for {
		p, err := s.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case pieces <- p:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// eventWriter writes deltas as events.
type eventWriter struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	from   int
	window *stream.Window
	begun  bool
	// seen counts the deltas that there are so far, written or not.
	seen int
}

// write writes a delta that the reader does not have.
func (e *eventWriter) write(d envelope.Delta) error {
	e.seen = d.Seq + 1
	if d.Seq < e.from {
		return nil
	}
	if !e.window.Open() {
		return errWindow
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	e.begin()
	e.window.Next()
	_, _ = fmt.Fprintf(e.w, "id: %d\ndata: %s\n\n", d.Seq, text)
	return e.out.Flush()
}

// begin writes the header of the response, once.
func (e *eventWriter) begin() {
	if e.begun {
		return
	}
	e.begun = true
	e.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e.w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprint(e.w, "retry: 500\n\n") // ms; who has left is seen below
}

// fail ends a stream whose rest the reader does not get: a delta that was written is not in the log, or
// the agent is not shown to him any more.
func (e *eventWriter) fail(name string, f *envelope.Fault) {
	payload, err := json.Marshal(bodyOf(f))
	if err == nil {
		_ = e.write(envelope.Delta{Seq: e.seen, Stream: name, Time: time.Now(), Type: envelope.DeltaError, Payload: payload}) // who has left is gone
	}
}

// progress tells progress beside the deltas in a comment: who reads the stream again has it no
// more.
func (e *eventWriter) progress(told map[string]any) {
	if text, err := json.Marshal(told); err == nil {
		e.comment(" progress " + string(text))
	}
}

// comment shows a reader that waits that the stream is open.
func (e *eventWriter) comment(text string) {
	e.begin()
	_, _ = fmt.Fprintf(e.w, ":%s\n\n", text)
	_ = e.out.Flush() // who has left is seen by the context
}
