package amp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/wire"
)

// socketPath ends the addresses of WebSockets, subprotocols are theirs; a client may offer
// none (M-094).
const socketPath = "ws"

var subprotocols = []string{"amp.v1", "aip.v1"}

// maxBodyField is the header field of the upgrade with max_body, in bytes: a client that
// reads it need not lose its connection to learn the bound.
const maxBodyField = "Amp-Max-Body"

// Limits of one socket.
const (
	maxSocketAsks = 64                  // that wait for their answers; one more is refused
	maxMalformed  = 16                  // messages that are none, after which it is closed
	proofTime     = 10 * time.Second    // for the message that shows the caller, where the upgrade does not
	socketWait    = 30 * 24 * time.Hour // for an answer; the task's own time ends before
	socketPing    = 30 * time.Second    // between two pings
	socketWrite   = 10 * time.Second    // for one message, and for the answer to a ping
)

// socket is one WebSocket, or a call of gRPC: messages go in both directions, for several agents
// of a realm.
type socket struct {
	g *Gateway
	// r is the request of the upgrade or the call. shown is set where it has a credential; a
	// message's is put there.
	r     *http.Request
	shown bool
	conn  socketConn
	ctx   context.Context
	end   context.CancelCauseFunc
	// caller is whose socket it is, as of the last message; joined is set when that is known.
	// Only the reading goroutine uses both.
	caller gateway.Caller
	joined bool
	asks   atomic.Int32
	// answering is held by the one goroutine that gives its place among asks back and writes
	// an answer: who reads the answer may ask again, and no answers pile up.
	answering sync.Mutex
	// running are its goroutines, and replies those of them that write answers.
	running, replies sync.WaitGroup
}

// socketHandler serves WebSockets below a path.
func (g *Gateway) socketHandler(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, shown, err := g.identifyRequest(r)
		if err == nil && shown && c.IsUser() {
			err = errUser
		}
		if err != nil {
			replier{g: g, w: w, r: r, token: tokenOfPath(path)}.refuse(c, message.Received{}, err)
			return
		}
		w.Header().Set(maxBodyField, strconv.FormatInt(g.MaxBody, 10))
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: subprotocols})
		if err != nil {
			return // it has answered
		}
		defer conn.CloseNow()
		conn.SetReadLimit(-1) // ReadSocket takes the limit
		s := &socket{g: g, r: r, shown: shown, conn: webSocket{conn}, caller: c}
		s.serve()
	})
}

// serve serves the socket until one side ends it, or the caller's token ends.
func (s *socket) serve() {
	s.ctx, s.end = context.WithCancelCause(s.r.Context())
	defer s.running.Wait()
	defer s.end(nil)
	if s.shown && !s.join(s.caller) {
		return
	}
	defer s.leave()
	if !s.joined && !s.takeFirst() {
		return
	}
	s.running.Go(func() { s.end(s.conn.keepAlive(s.ctx)) })
	for malformed := 0; malformed < maxMalformed; {
		text, err := s.readText()
		if errors.Is(err, io.EOF) { // the caller sends no more, and may still read
			s.leave()
			s.replies.Wait()
		}
		if err != nil {
			return
		}
		if !s.take(text, nil) {
			malformed++
		}
	}
	s.conn.shut(websocket.StatusPolicyViolation, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "too many messages that are none"))
}

// takeFirst takes the messages until one shows the caller. It returns false if none does in time.
func (s *socket) takeFirst() bool {
	late := time.AfterFunc(proofTime, func() { s.conn.shut(websocket.StatusPolicyViolation, errNoCredential) })
	defer late.Stop()
	for !s.joined {
		if !s.take(s.readText()) {
			return false
		}
	}
	return late.Stop()
}

// join makes the socket a realm's, unless the realm has too many.
func (s *socket) join(c gateway.Caller) bool {
	if refused := s.g.sockets.Add(c, s, s.conn); refused != nil {
		f := &message.Fault{Code: message.RateLimitExceeded, Text: refused.Reason, RetryAfter: retryAfter}
		if refused.Code == websocket.StatusGoingAway {
			f.Code, f.Reason = message.InsufficientResources, message.ReasonDraining
		}
		s.conn.shut(refused.Code, f)
		return false
	}
	s.caller, s.joined = c, true
	return true
}

// leave ends what join has begun.
func (s *socket) leave() {
	if s.joined {
		s.g.sockets.Remove(s.caller, s)
	}
	s.joined = false
}

// readText reads a message. An error has ended the socket, but for io.EOF.
func (s *socket) readText() ([]byte, error) {
	text, err := s.conn.read(s.ctx, s.g.MaxBody, s.g.Pace(s.caller.Principal.Tenant))
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return text, err
	case errors.Is(err, errMessageTooLarge), errors.Is(err, wire.ErrSlowMessage), errors.Is(err, wire.ErrNoPlace):
		s.g.record(s.caller, message.Received{}, nil, reply{}, err)
	}
	s.end(err)
	return nil, err
}

// take takes one message, if there is one; it returns false for one that could not be read.
func (s *socket) take(text []byte, err error) bool {
	if err != nil || s.shown && !s.renew() {
		return false
	}
	if isGreeting(text) {
		if s.joined {
			err = s.g.Runtime.CheckRate(s.caller)
		}
		return err == nil
	}
	in, c, err := s.g.read(s.g.socketReader, s.r, s.caller, s.shown, text, nil)
	switch {
	case err == nil && !s.joined:
		s.shown = s.r.Header.Get(authorizationHeader) != ""
		if !s.join(c) {
			return false
		}
	case err == nil && (c.Realm != s.caller.Realm || c.Principal.Tenant != s.caller.Principal.Tenant):
		err = message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "the connection is of %s", s.caller.Realm)
	}
	if err != nil {
		s.g.record(c, in, text, reply{}, err)
		s.refuse(c, in, err)
		if !s.joined {
			s.conn.shut(websocket.StatusPolicyViolation, message.Faultf(message.AuthenticationFailed, message.ReasonCredential, "the first message is not of a known caller"))
		}
		return false
	}
	if in.Type == message.Request && s.asks.Add(1) > maxSocketAsks {
		s.asks.Add(-1)
		s.refuse(c, in, fmt.Errorf("%d requests of this connection wait for their answers: %w", maxSocketAsks, gateway.ErrBusy))
		return true
	}
	s.handle(c, in, text)
	return true
}

// renew gives the caller the rights that the configuration in force has for him, or ends the
// socket.
func (s *socket) renew() bool {
	c, err := s.g.Runtime.Renew(s.caller)
	if err != nil {
		s.conn.shut(websocket.StatusPolicyViolation, message.Faultf(message.AuthenticationFailed, message.ReasonForbidden, "the caller is not let in any more"))
		s.end(err)
		return false
	}
	s.caller = c
	return true
}

// isGreeting reports whether a text is one of the frames that other implementations send
// besides messages: a handshake or a heartbeat. They mean nothing here.
func isGreeting(text []byte) bool {
	var frame struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
	}
	return json.Unmarshal(text, &frame) == nil && frame.Message == nil && (frame.Type == "handshake" || frame.Type == "heartbeat")
}

// handle hands a message on, and answers it.
func (s *socket) handle(c gateway.Caller, in message.Received, text []byte) {
	got, err := s.g.accept(s.ctx, c, in, text, false)
	s.g.record(c, in, text, got, err)
	if err == nil {
		for _, agent := range agentsOf(in) {
			s.g.sockets.AddAgent(c, s, agent)
		}
	}
	if err == nil && got.owed && !got.accepted {
		s.replies.Add(1)
		s.running.Go(func() { defer s.replies.Done(); s.reply(c, got.exchange) })
		return
	}
	if err == nil && got.relay != nil {
		s.replies.Add(1)
		s.running.Go(func() { defer s.replies.Done(); s.replyRelayed(c, *got.relay) })
		return
	}
	if in.Type == message.Request {
		s.asks.Add(-1)
	}
	if err != nil {
		s.refuse(c, in, err)
		return
	}
	var m message.Message
	switch {
	case got.payload != nil:
		m = s.g.responseTo(c, in, *got.payload)
	case got.accepted:
		n, err := readNote(got.exchange)
		if err != nil {
			s.refuse(c, in, err)
			return
		}
		m = s.g.acceptedTo(c, got.exchange, n)
	default:
		return // nothing is owed
	}
	s.write(c, in.Token, m)
}

// agentsOf are the agents of the caller that speak by a message which was taken: its sender,
// and who registers by it.
func agentsOf(in message.Received) (agents []string) {
	var p struct {
		Agent struct {
			ID string `json:"id"`
		} `json:"agent"`
	}
	if in.Source.Agent != "" {
		agents = append(agents, in.Source.Agent)
	}
	if in.Destination.Agent == registryAgent && json.Unmarshal(in.Payload, &p) == nil && p.Agent.ID != "" {
		agents = append(agents, p.Agent.ID)
	}
	return agents
}

// reply writes the answer of an exchange as soon as it is there. Who has left sends the
// message again.
func (s *socket) reply(c gateway.Caller, x gateway.Exchange) {
	n, err := readNote(x)
	var a gateway.Answer
	if err == nil {
		a, err = s.g.await(s.ctx, c, x, n, socketWait)
	}
	isLarge := len(a.Body) > wire.LargeMessage
	if isLarge {
		a = gateway.Answer{} // it is loaded again: a peer that reads slowly holds no more than one
	}
	s.answering.Lock()
	defer s.answering.Unlock()
	s.asks.Add(-1)
	if s.ctx.Err() != nil {
		return
	}
	if err == nil && isLarge {
		var ok bool
		if a, ok, err = s.g.Runtime.Look(s.ctx, x); err == nil && !ok {
			err = fmt.Errorf("the message %q and its task are gone: %w", x.ID, gateway.ErrUnknown) // erased meanwhile
		}
	}
	if err != nil {
		s.refuse(c, n.received(), err)
		return
	}
	m, _ := s.g.answerTo(c, x, n, a)
	s.write(c, n.Token, m) // the exchange keeps it
}

// replyRelayed writes the answer of a registered agent, which may come on this very socket.
func (s *socket) replyRelayed(c gateway.Caller, r relay) {
	m := r.run(s.ctx)
	s.answering.Lock()
	defer s.answering.Unlock()
	s.asks.Add(-1)
	s.write(c, r.in.Token, m)
}

// refuse writes the error message for a message, but for one that is itself an answer.
func (s *socket) refuse(c gateway.Caller, in message.Received, err error) {
	if in.Type == message.Response || in.Type == message.Error {
		return
	}
	s.write(c, in.Token, errorTo(in, s.g.faultOf(err)))
}

// write writes a message. Its reader may have left: then it asks again.
func (s *socket) write(c gateway.Caller, token string, m message.Message) {
	text, err := s.g.write(c, token, m)
	if err != nil {
		s.g.Log.Error("amp: an answer cannot be written", "error", err)
		return
	}
	_ = s.conn.write(s.ctx, text)
}
