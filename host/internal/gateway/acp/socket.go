package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
)

// socketPath is the address of WebSockets, subprotocol their subprotocol.
const (
	socketPath  = "/acp/v1/ws"
	subprotocol = "acp.v1"
)

// maxBodyField is the header field of the upgrade with max_body, in bytes: a client that
// reads it need not lose its connection to learn the bound.
const maxBodyField = "Acp-Max-Body"

// Limits of one socket.
const (
	maxSocketAsks = 64                  // that wait for their answers; one more is refused as busy
	maxMalformed  = 16                  // messages that are none, after which it is closed
	socketWait    = 30 * 24 * time.Hour // for an answer; the task's own time ends before
	socketPing    = 30 * time.Second    // between two pings
	socketWrite   = 10 * time.Second    // for one message, and for the answer to a ping
)

// socket is one WebSocket: messages go in both directions, for several agents of a realm.
type socket struct {
	g      *Gateway
	caller gateway.Caller
	conn   *websocket.Conn
	ctx    context.Context
	end    context.CancelCauseFunc
	asks   atomic.Int32
	// answering is held by the one goroutine that gives its place among asks back and writes
	// an answer: who reads the answer may ask again, and no answers pile up.
	answering sync.Mutex
	// relays hand messages to other members of the realm, in their order.
	relays chan func()
	// running are its goroutines.
	running sync.WaitGroup
}

// serveSocket serves a WebSocket until one side ends it, or the caller's token ends.
func (g *Gateway) serveSocket(w http.ResponseWriter, r *http.Request) {
	c, err := g.Runtime.Identify(r)
	if err != nil {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if c.IsUser() {
		http.Error(w, needsAgent, http.StatusForbidden)
		return
	}
	if !offersSubprotocol(r) {
		http.Error(w, "offer the subprotocol "+subprotocol, http.StatusBadRequest)
		return
	}
	w.Header().Set(maxBodyField, strconv.FormatInt(g.MaxBody, 10))
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol}})
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1) // ReadSocket takes the limit
	s := &socket{g: g, caller: c, conn: conn, relays: make(chan func(), maxSocketAsks)}
	s.ctx, s.end = context.WithCancelCause(r.Context())
	defer s.running.Wait()
	defer s.end(nil)
	if refused := g.sockets.Add(c, s, conn); refused != nil {
		_ = conn.Close(refused.Code, refused.Reason)
		return
	}
	defer g.sockets.Remove(c, s)
	s.running.Go(s.ping)
	s.running.Go(s.relay)
	s.read()
}

// offersSubprotocol reports whether ours is among those that a request lists, in one header
// field or several (https://www.rfc-editor.org/rfc/rfc6455#section-11.3.4).
func offersSubprotocol(r *http.Request) bool {
	for _, list := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(name) == subprotocol {
				return true
			}
		}
	}
	return false
}

// relay runs relays until the socket ends. They wait for the peers of sockets, whose answer
// may be the next that this one reads.
func (s *socket) relay() {
	for {
		select {
		case run := <-s.relays:
			run()
		case <-s.ctx.Done():
			return
		}
	}
}

// read takes messages until the socket ends. Its caller has the rights that the
// configuration in force gives him.
func (s *socket) read() {
	pace := s.g.Pace(s.caller.Principal.Tenant)
	for malformed := 0; malformed < maxMalformed; {
		kind, text, err := wire.ReadSocket(s.ctx, s.conn, s.g.MaxBody, pace)
		switch {
		case errors.Is(err, websocket.ErrMessageTooBig):
			s.g.recordUnread(s.caller, incoming{}, nil, s.g.tooLarge())
			_ = s.conn.Close(websocket.StatusMessageTooBig, fmt.Sprintf("a message is larger than max_body, %d bytes", s.g.MaxBody))
		case errors.Is(err, wire.ErrSlowMessage), errors.Is(err, wire.ErrNoPlace):
			s.g.recordUnread(s.caller, incoming{}, nil, err)
		}
		if err != nil {
			s.end(err)
			return
		}
		if kind != websocket.MessageText {
			_ = s.conn.Close(websocket.StatusUnsupportedData, "a message is a text")
			return
		}
		c, err := s.g.Runtime.Renew(s.caller)
		if err != nil {
			_ = s.conn.Close(websocket.StatusPolicyViolation, "the caller is not let in any more")
			return
		}
		if !s.take(c, text) {
			malformed++
		}
	}
	_ = s.conn.Close(websocket.StatusPolicyViolation, "too many messages that are none")
}

// take takes one message; it returns false for one that could not be read.
func (s *socket) take(c gateway.Caller, text []byte) bool {
	in, err := s.g.reader.read(text)
	if err != nil {
		s.g.recordUnread(s.caller, in, text, err)
		s.refuse(in.Header, err)
		return false
	}
	expects, _ := in.Header.Type.Expects()
	if expects != "" {
		if s.asks.Add(1) > maxSocketAsks {
			s.asks.Add(-1)
			s.refuse(in.Header, &fault{code: codeBusy, text: "64 questions of this connection wait for their answers", retry: true})
			return true
		}
	}
	if !s.g.isRelayed(c, in.Header) {
		s.handle(c, in)
		return true
	}
	select {
	case s.relays <- func() { s.handle(c, in) }:
	default:
		// What is relayed waits for a peer, who may be this one: only if it goes on reading
		// can it end. The mailbox waits for none.
		in.toMailbox = true
		s.handle(c, in)
	}
	return true
}

// handle hands a message to the runtime, or to whom it is for, and answers it.
func (s *socket) handle(c gateway.Caller, in incoming) {
	a, err := s.g.accept(s.ctx, c, in, false)
	if err == nil {
		s.g.sockets.AddAgent(c, s, string(in.Header.Sender))
	}
	if err == nil && a.owed {
		s.running.Go(func() { s.reply(in, a.Exchange) })
		return
	}
	if expects, _ := in.Header.Type.Expects(); expects != "" {
		s.asks.Add(-1)
	}
	switch {
	case err != nil:
		s.refuse(in.Header, err)
	case wantsAcknowledge(in.Header):
		_ = s.write(s.ctx, s.g.acknowledgeOf(s.caller, in.Header))
	}
}

// reply writes the answer of an exchange as soon as it is there, and progress before it
// where that was asked for. Who has left sends his message again.
func (s *socket) reply(in incoming, x gateway.Exchange) {
	var a gateway.Answer
	var err error
	if gateway.ExtensionText(in.Header.Extra[extraProgress]) == "inform" {
		n := 0
		a, err = gateway.FollowToEnd(s.ctx, s.g.Runtime, x, func(p gateway.Piece) {
			n++
			s.progress(x, p, n)
		})
	} else {
		a, err = gateway.Await(s.ctx, s.g.Runtime, x, socketWait)
	}
	isLarge := len(a.Body) > wire.LargeMessage
	if isLarge {
		a = gateway.Answer{} // it is loaded again: a peer that reads slowly holds no more than one
	}
	s.answering.Lock()
	defer s.answering.Unlock()
	s.asks.Add(-1)
	if err == nil && isLarge && s.ctx.Err() == nil {
		var ok bool
		if a, ok, err = s.g.Runtime.Look(s.ctx, x); err == nil && !ok {
			err = fmt.Errorf("the message %q and its task are gone: %w", x.ID, gateway.ErrUnknown) // erased meanwhile
		}
	}
	if err != nil {
		if s.ctx.Err() == nil {
			s.refuse(in.Header, err)
		}
		return
	}
	if m, err := answerTo(s.caller, x, a); err == nil {
		_ = s.write(s.ctx, m) // the exchange keeps it
	}
}

// progress writes progress as an INFORM about the question.
func (s *socket) progress(x gateway.Exchange, p gateway.Piece, n int) {
	var about note
	if p.Text == "" || json.Unmarshal(x.Note, &about) != nil {
		return
	}
	m := about.message(ownID("progress "+strconv.Itoa(n), s.caller, x.ID), time.Now())
	m.Header.Type = message.MessageTypeInform
	m.Header.ContentType, m.Body = "text/plain", p.Text
	if m.Header.Extra == nil {
		m.Header.Extra = map[string]json.RawMessage{}
	}
	m.Header.Extra[extraProgress] = wire.MustEncode(partial)
	_ = s.write(s.ctx, m)
}

// refuse writes an ERROR where one is owed.
func (s *socket) refuse(h message.Header, err error) {
	if f := s.g.faultOf(err); isRefusedAloud(h, f) {
		_ = s.write(s.ctx, s.g.refusal(s.caller, h, f))
	}
}

func (s *socket) write(ctx context.Context, m message.Message) error {
	text, err := m.MarshalJSON()
	if err != nil {
		return err
	}
	return wire.WriteSocket(ctx, s.conn, text, socketWrite)
}

// ping ends the socket of a peer that is gone without a word.
func (s *socket) ping() { s.end(wire.PingSocket(s.ctx, s.conn, socketPing, socketWrite)) }
