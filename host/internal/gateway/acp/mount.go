package acp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
)

// messagesPath is where messages are sent to, answersPath where answers are read.
const (
	messagesPath = "/acp/v1/messages"
	answersPath  = messagesPath + "/"
)

// Mounts implements [gateway.Gateway].
func (g *Gateway) Mounts() []gateway.Mount {
	return []gateway.Mount{
		{Method: http.MethodPost, Pattern: messagesPath, Proof: gateway.Bearer, MaxBody: g.MaxBody, Streams: true, Handler: http.HandlerFunc(g.serveMessage)},
		{Method: http.MethodGet, Pattern: messagesPath, Proof: gateway.Bearer, Streams: true, Handler: http.HandlerFunc(g.serveMailbox)},
		{Method: http.MethodGet, Pattern: eventsPath, Proof: gateway.Bearer, Streams: true, Handler: http.HandlerFunc(g.serveEvents)},
		{Method: http.MethodGet, Pattern: socketPath, Proof: gateway.Bearer, Streams: true, Handler: http.HandlerFunc(g.serveSocket)},
		{Method: http.MethodGet, Pattern: answersPath + "*rest", Proof: gateway.Bearer, Streams: true, Handler: http.HandlerFunc(g.serveAnswer)},
	}
}

// serveMessage takes one message.
func (g *Gateway) serveMessage(w http.ResponseWriter, r *http.Request) {
	c, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	text, err := wire.ReadBody(http.MaxBytesReader(w, r.Body, g.MaxBody), r.ContentLength)
	if errors.As(err, new(*http.MaxBytesError)) {
		f := g.tooLarge()
		g.recordUnread(c, incoming{}, text, f)
		g.refuse(w, c, incoming{}, f)
		return
	}
	if err != nil {
		return // the host answers for a body that it could not read
	}
	in, err := g.reader.read(text)
	if err != nil {
		g.recordUnread(c, in, text, err)
		g.refuse(w, c, in, err)
		return
	}
	if _, has := in.Header.Extra[extraTrace]; !has {
		in.Header.Extra = gateway.WithTrace(in.Header.Extra, extraPrefix, swarm.HeaderTrace(r.Header))
	}
	wait := gateway.PreferredWait(r, g.Hold, g.Hold)
	a, err := g.accept(r.Context(), c, in, wait == 0)
	if err != nil {
		g.refuse(w, c, in, err)
		return
	}
	if !a.owed {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	g.serveExchange(w, r, c, in, a.Exchange, wait)
}

// serveAnswer serves the answer to a message that was taken before.
func (g *Gateway) serveAnswer(w http.ResponseWriter, r *http.Request) {
	c, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	id, ok := gateway.IDOfPath(strings.TrimPrefix(r.URL.Path, answersPath))
	if c.IsUser() {
		http.Error(w, needsAgent, http.StatusForbidden)
		return
	}
	if !ok {
		http.Error(w, "the path is not "+answersPath+"ID", http.StatusNotFound)
		return
	}
	x, err := g.Runtime.Find(r.Context(), c, id)
	if errors.Is(err, gateway.ErrUnknown) {
		http.Error(w, fmt.Sprintf("no answer to a message %q of yours is kept", id), http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, g.faultOf(err).text, g.faultOf(err).httpStatus())
		return
	}
	g.serveExchange(w, r, c, incoming{}, x, gateway.PreferredWait(r, 0, g.Hold))
}

// serveExchange writes the answer of an exchange, or after a time where it will be. in is the
// message that asks, empty for a reader of its Location.
func (g *Gateway) serveExchange(w http.ResponseWriter, r *http.Request, c gateway.Caller, in incoming, x gateway.Exchange, wait time.Duration) {
	a, err := gateway.Await(r.Context(), g.Runtime, x, wait)
	switch {
	case err == nil:
		m, err := answerTo(c, x, a)
		if err != nil {
			g.refuse(w, c, incoming{}, err)
			return
		}
		writeMessage(w, http.StatusOK, m)
	case errors.Is(err, gateway.ErrHeld), errors.Is(err, gateway.ErrDraining):
		w.Header().Set("Location", answersPath+gateway.PathOfID(x.ID))
		w.WriteHeader(http.StatusAccepted)
	case r.Context().Err() != nil: // the caller has left, or may not call any more
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	default:
		g.refuse(w, c, in, err)
	}
}

// refuse answers a message that was not taken.
func (g *Gateway) refuse(w http.ResponseWriter, c gateway.Caller, in incoming, err error) {
	f := g.faultOf(err)
	if f.retry {
		w.Header().Set("Retry-After", f.retryAfter())
	}
	if !isRefusedAloud(in.Header, f) {
		http.Error(w, f.text, f.httpStatus()) // no message: nothing that a program could answer
		return
	}
	writeMessage(w, f.httpStatus(), g.refusal(c, in.Header, f))
}

// recordUnread records a text that could not be read as a message.
func (g *Gateway) recordUnread(c gateway.Caller, in incoming, text []byte, err error) {
	event := gateway.Event{Caller: c, Foreign: string(in.Header.ID), Type: string(in.Header.Type), Text: text}
	g.Runtime.Record(event.WithOutcome(false, err))
}

func writeMessage(w http.ResponseWriter, status int, m message.Message) {
	text, err := m.MarshalJSON()
	if err != nil {
		http.Error(w, "the message cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonContentType)
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller may have left
}
