package iacp

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// Limits of a connection.
const (
	frameTime    = time.Minute      // for a frame whose first byte has come
	writeTime    = 10 * time.Second // for one message
	drainTime    = 30 * time.Second // for answers after the peer has closed
	maxMalformed = 10               // messages that are none, in a minute, after which it ends
	maxConnAsks  = 1000             // messages that wait for their answers
)

// conn is a connection: messages go in both directions, for several agents of a realm.
type conn struct {
	g      *Gateway
	net    net.Conn
	tls    *tls.ConnectionState // nil without
	frames *message.FrameReader
	ctx    context.Context
	end    context.CancelCauseFunc

	// shook is set after a handshake; acks and progress are its features, peerMost the
	// bytes that the peer takes.
	shook, acks, progress bool
	peerMost              int64
	auth                  message.Message
	early                 *early
	// served is set when the peer is known, as caller; unguard ends what closes the
	// connection of an unknown one when the host stops.
	served  bool
	unguard func() bool
	caller  gateway.Caller
	// agents have spoken on it; conns.mu guards them.
	agents map[string]bool

	// closing is set when no more is read, and the answers that are due are sent.
	closing bool
	writing sync.Mutex
	// malformed are the times of the last messages that were none.
	malformed []time.Time

	mu sync.Mutex
	// told is set when the peer was told that the connection ends.
	leaving, told bool
	asks          int
	// enrolled are our agents that a called partner was told of, nil for a peer that has
	// called; enroll alone writes it.
	enrolled map[string]enrolment
	running  sync.WaitGroup
}

// early is a message that came before the peer was known.
type early struct {
	message.Message
	text []byte
}

// run serves the connection of a known peer.
func (c *conn) run() {
	p, isPartner := c.g.Runtime.Partner(c.caller.Realm)
	if c.caller.IsUser() || !isPartner {
		c.refuse(c.firstOr(c.auth), &fault{code: codeAuth, text: "IaCP is for the agents of partners: show the credential of one"})
		return
	}
	if err := c.g.conns.add(c); err != nil {
		c.refuse(c.firstOr(c.auth), err)
		return
	}
	defer c.g.conns.remove(c)
	c.g.Mark(c.net, true)
	if c.shook {
		_ = c.tell(message.AuthResult, c.auth, map[string]any{"status": "success", "partner": p.Name})
	}
	c.converse()
}

// converse exchanges messages with a known peer until the connection ends.
func (c *conn) converse() {
	stop := context.AfterFunc(c.ctx, func() { _ = c.net.Close() })
	defer stop()
	if c.shook {
		c.running.Go(c.beat)
	}
	defer c.running.Wait()
	defer c.end(nil)
	if c.early != nil && !c.handle(c.early.Message, c.early.text) {
		return
	}
	for c.next() {
	}
	if c.closing {
		c.drain()
		select {
		case <-c.ctx.Done():
		case <-time.After(drainTime):
		}
	}
}

// next takes one message. It returns false at the end of the connection.
func (c *conn) next() bool {
	_ = c.net.SetReadDeadline(time.Now().Add(c.g.Idle))
	if err := c.frames.Wait(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.tell(message.ConnectionClose, message.Message{}, map[string]any{"reason": "nothing came for " + c.g.Idle.String()})
			c.closing = true
		}
		return false
	}
	_ = c.net.SetReadDeadline(time.Now().Add(frameTime))
	m, text, err := c.read()
	if isFault := errors.As(err, new(*message.Fault)); err != nil && !isFault {
		c.refuse(m, err)
		return false
	}
	if err != nil {
		c.g.record(c.caller, m, text, gateway.Exchange{}, err)
		c.refuse(m, err)
		return c.forgives(time.Now())
	}
	return c.handle(m, text)
}

// forgives counts a message that was none, and reports whether the connection goes on.
func (c *conn) forgives(now time.Time) bool {
	c.malformed = slices.DeleteFunc(append(c.malformed, now), func(at time.Time) bool { return now.Sub(at) > time.Minute })
	return len(c.malformed) < maxMalformed
}

// read reads one message. What is no message is a [message.Fault].
func (c *conn) read() (m message.Message, text []byte, err error) {
	if text, err = c.frames.Next(); err == nil {
		m, err = c.g.reader.Read(text)
	}
	return m, text, err
}

// handle does what a message wants, with the rights that the configuration in force gives
// its sender.
func (c *conn) handle(m message.Message, text []byte) bool {
	caller, err := c.g.Runtime.Renew(c.caller)
	if err != nil {
		c.refuse(m, &fault{code: codeAuth, text: "the peer is not let in any more"})
		return false
	}
	switch m.Type.Class() {
	case message.Control:
		return c.control(caller, m)
	case message.Answers:
		c.answered(caller, m, text)
	default:
		c.take(caller, m, text)
	}
	return true
}

// take hands a message to the runtime, acknowledges it, and answers it when there is an
// answer (I-026).
func (c *conn) take(caller gateway.Caller, m message.Message, text []byte) {
	owed := m.Owed()
	if owed && !c.begin() {
		c.refuse(m, fmt.Errorf("%d messages of the connection wait for answers: %w", maxConnAsks, gateway.ErrBusy))
		return
	}
	x, err := c.g.accept(c.ctx, caller, m, text)
	c.g.record(caller, m, text, x, err)
	if err != nil {
		c.refuse(m, err)
		if owed {
			c.done()
		}
		return
	}
	c.g.conns.speaks(c, m.Sender.ID)
	c.acknowledge(m)
	if owed {
		go func() {
			defer c.done()
			c.reply(caller, m, x)
		}()
	}
}

// begin counts a message that will be answered, if there is a place for it. What reads the
// connection calls it.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks >= maxConnAsks {
		return false
	}
	c.asks++
	c.running.Add(1)
	return true
}

func (c *conn) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks--
	c.running.Done()
	if c.leaving && c.asks == 0 {
		c.end(nil)
	}
}

// leave tells the peer that the connection ends, and ends it when all answers are sent
// (I-058).
func (c *conn) leave(reason string) {
	c.mu.Lock()
	told := c.told
	c.told = true
	c.mu.Unlock()
	if told {
		return
	}
	_ = c.tell(message.ConnectionClose, message.Message{}, map[string]any{"reason": reason})
	c.drain()
}

// drain ends the connection when all answers are sent.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	if c.asks == 0 {
		c.end(nil)
	}
}

// beat sends heartbeats (I-055).
func (c *conn) beat() {
	tick := time.NewTicker(c.g.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.tell(message.Heartbeat, message.Message{}, struct{}{}) != nil {
				c.end(errAway)
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// acknowledge tells the peer that a message is kept.
func (c *conn) acknowledge(m message.Message) {
	if c.acks || m.Meta().Ack {
		_ = c.tell(message.Ack, m, map[string]any{"message_id": m.ID, "status": "received"})
	}
}

// tell writes a message of the host itself, about another or none.
func (c *conn) tell(t message.Type, about message.Message, payload any) error {
	return c.write(c.compose(t, about, payload))
}

// compose makes a message of the host itself.
func (c *conn) compose(t message.Type, about message.Message, payload any) message.Message {
	from := c.g.Network
	if about.To() != "" {
		from = about.To()
	}
	m := message.New(t, from, payload)
	m.Parent, m.Conversation = about.ID, about.Conversation
	if about.Sender.ID != "" {
		m.Recipient = &message.Recipient{ID: about.Sender.ID}
	}
	return m
}

// refuse answers a message that was not taken. Answers get no answer (G-031), and who has
// left hears nothing.
func (c *conn) refuse(m message.Message, err error) {
	switch {
	case errors.Is(err, message.ErrHTTP):
		_ = c.net.SetWriteDeadline(time.Now().Add(writeTime))
		_, _ = c.net.Write([]byte(healthy))
		return
	case isOver(err), c.ctx.Err() != nil && errors.Is(err, context.Cause(c.ctx)):
		return
	}
	f := c.g.faultOf(err)
	if m.Type.Class() == message.Answers && f.code != codeInvalid {
		return
	}
	_ = c.tell(message.ErrorResponse, m, f.payload())
	if errors.Is(err, message.ErrTooLarge) {
		c.linger()
	}
}

// linger lets the peer read why its frame was refused: closing at once, with bytes of it
// unread, would cost it the reason.
func (c *conn) linger() {
	if half, ok := c.net.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(writeTime))
		_, _ = io.CopyN(io.Discard, c.net, 4*c.g.MaxBody)
	}
}

// write writes a message. A peer that does not read loses its connection.
func (c *conn) write(m message.Message) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	return c.writeText(text)
}

// errTooLong is returned for a message that the peer would not take.
var errTooLong = gateway.Refuse("the message is longer than the peer takes")

func (c *conn) writeText(text []byte) error {
	if int64(len(text)) > c.peerMost {
		return errTooLong
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.net.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := c.net.Write(message.AppendFrame(make([]byte, 0, len(text)+4), text))
	if err != nil && c.end != nil {
		c.end(err)
	}
	return err
}

// control does what is about the connection itself.
func (c *conn) control(caller gateway.Caller, m message.Message) bool {
	switch m.Type {
	case message.Heartbeat:
		_ = c.tell(message.HeartbeatAck, m, struct{}{})
	case message.Ack:
		c.g.waiting.acknowledge(caller, ackOf(m))
	case message.ConnectionClose:
		c.closing = true
		return false
	case message.AgentRegister:
		c.register(caller, m)
	case message.AgentRegisterResponse:
		c.noteRegistered(caller, m)
	case message.AgentUnregister:
		c.unregister(caller, m)
	case message.AgentDiscover:
		c.discover(caller, m)
	case message.MessageStatus:
		c.status(caller, m)
	case message.Auth:
		c.proveAgain(m)
	case message.Handshake:
		c.refuse(m, &fault{code: codeInvalid, text: "the connection has begun already"})
	}
	return true
}

// proveAgain answers an auth of a peer that is known. One who has shown a certificate may
// name that as its method, since the handshake lists it (§5.3.1).
func (c *conn) proveAgain(m message.Message) {
	shown, err := readCredential(m.Payload)
	if err == nil && c.auth.ID == "" && shown == (credential{Method: methodCertificate}) {
		_ = c.tell(message.AuthResult, m, map[string]any{"status": "success", "partner": c.caller.Realm})
		return
	}
	c.refuse(m, &fault{code: codeInvalid, text: "the connection has begun already"})
}

// ackOf is the id of the message that an acknowledgement names.
func ackOf(m message.Message) string {
	var named struct {
		ID string `json:"message_id"`
	}
	if m.Parent == "" && json.Unmarshal(m.Payload, &named) == nil {
		return named.ID
	}
	return m.Parent
}
