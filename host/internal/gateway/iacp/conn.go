package iacp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	// hasPlace is set while the connection is one of bigUnproven.
	hasPlace bool
	caller   gateway.Caller
	// room is the realm's; admitted are the bytes of it that the frame being read has.
	room     *room
	admitted int64
	// agents have spoken on it; conns.mu guards them.
	agents map[string]*spoken

	// closing is set when no more is read, and the answers that are due are sent.
	closing bool
	writing sync.Mutex
	held    heldAcks
	clock   readClock
	// malformed are the times of the last messages that were none.
	malformed []time.Time

	// queue has what was read and not taken yet, taking ends with its worker.
	queue  *queue
	taking sync.WaitGroup

	mu sync.Mutex
	// told is set when the peer was told that the connection ends.
	leaving, told bool
	// asks are the messages that wait for their answers, unsent the answers of other connections
	// that are waited for: freed is closed when one of both has ended, nil while nothing waits.
	asks, unsent int
	freed        chan struct{}
	rhythm       rhythm
	// pushes are the agents whose unsent answers are being pushed, true for one that may have
	// got another meanwhile.
	pushes map[string]bool
	// enrolled are our agents that a called partner was told of, nil for a peer that has
	// called; enroll alone writes it.
	enrolled map[string]enrolment
	// unacked are the answers and messages of other members that wait for acknowledgements, by
	// their ids.
	unacked map[string][]*expectedAck
	// waits are the messages whose answers are waited for, by their ids; true for one that was asked
	// again meanwhile.
	waits   map[string]bool
	running sync.WaitGroup
	// readEnded is closed when nothing more is read.
	readEnded chan struct{}
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
		c.refuseConnection(c.firstOr(c.auth), &fault{code: codeAuth, text: "IaCP is for the agents of partners: show the credential of one"})
		return
	}
	if err := c.enter(p); err != nil {
		c.refuseConnection(c.firstOr(c.auth), err)
		return
	}
	defer c.g.conns.remove(c)
	c.g.Mark(c.net, true)
	if isHub(p) {
		c.enrolled = map[string]enrolment{}
		c.running.Go(func() { c.enroll(p) })
	}
	c.converse()
}

// enter makes the connection one of its realm. Nothing is written on it before the auth_result, for which
// the peer waits.
func (c *conn) enter(p gateway.Partner) error {
	result, err := c.g.encode(c.caller, c.compose(message.AuthResult, c.auth, map[string]any{"status": "success", "partner": p.Name}))
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.g.conns.add(c); err != nil {
		return err
	}
	if c.shook {
		_ = c.writeLocked(result)
		c.auth = headOf(c.auth)
	}
	return nil
}

// converse exchanges messages with a known peer, which has called or was called, until the connection
// ends.
func (c *conn) converse() {
	c.frames.Admit = func(length int64) error {
		c.clock.stop()
		defer c.clock.start()
		return c.admitProven(length)
	}
	stop := context.AfterFunc(c.ctx, func() { _ = c.net.Close() })
	defer stop()
	context.AfterFunc(c.ctx, c.failUnacked)
	if c.shook {
		c.running.Go(c.beat)
	}
	defer c.running.Wait()
	defer c.endTaking()
	defer c.g.early.leave(c)
	defer c.end(nil)
	if c.early != nil && !c.handleEarly() {
		return
	}
	for c.next() {
	}
	if c.closing {
		stop()
		c.finish()
	}
}

// handleEarly handles the message that came before the peer was known, in the room of its realm.
func (c *conn) handleEarly() bool {
	first := c.early
	c.early = nil
	if err := c.admitProven(int64(len(first.text))); err != nil {
		c.refuse(first.Message, err)
		return false
	}
	return c.handle(first.Message, first.text)
}

// finish sends the answers that are due to a peer that closes, and takes its acknowledgements and
// answers (I-058). Then it reads on until the peer has left: to close with bytes unread would cost it
// the answers.
func (c *conn) finish() {
	c.endTaking()
	over := time.NewTimer(drainTime)
	defer over.Stop()
	_ = c.net.SetReadDeadline(time.Now().Add(drainTime))
	stop := context.AfterFunc(c.ctx, c.closeWrite)
	defer stop()
	c.drain()
	for c.handleLast() {
	}
	close(c.readEnded)
	c.failUnacked()
	select {
	case <-c.ctx.Done():
	case <-over.C:
	}
}

// handleLast handles a message of a peer that closes. It returns false at the end.
func (c *conn) handleLast() bool {
	m, text, err := c.read()
	class := m.Type.Class()
	switch {
	case err != nil:
		return false
	case c.ctx.Err() != nil: // all is sent
	case m.Type == message.Ack, m.Type == message.Heartbeat, class == message.Answers:
		return c.handle(m, text)
	case class == message.Asks, class == message.Tells, m.Type == message.MessageStatus, m.Type == message.AgentRegister, m.Type == message.AgentDiscover:
		c.refuse(m, fmt.Errorf("the connection is being closed: %w", gateway.ErrDraining))
	}
	c.release(text)
	return true
}

// next takes one message. It returns false at the end of the connection.
func (c *conn) next() bool {
	_ = c.net.SetReadDeadline(time.Now().Add(c.g.Idle))
	c.clock.start()
	err := c.frames.Wait()
	c.clock.stop()
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.tell(message.ConnectionClose, message.Message{}, map[string]any{"reason": "nothing came for " + c.g.Idle.String()})
			c.closing = true
		}
		return false
	}
	_ = c.net.SetReadDeadline(time.Now().Add(c.g.FrameTime))
	m, text, err := c.read()
	switch {
	case err == nil:
		return c.handle(m, text)
	case errors.As(err, new(*message.Fault)):
		c.g.record(c.caller, m, text, gateway.Exchange{}, err)
		c.noteRefusedAnswer(m, err)
		c.refuse(m, err)
		return c.forgives(time.Now())
	}
	if isOver(err) {
		return false
	}
	c.refuse(m, err)
	if skipped, _ := c.frames.Skip(); skipped {
		c.g.record(c.caller, m, nil, gateway.Exchange{}, err)
		return c.forgives(time.Now())
	}
	if errors.Is(err, message.ErrTooLarge) {
		c.linger()
	}
	return false
}

// forgives counts a message that was none, and reports whether the connection goes on.
func (c *conn) forgives(now time.Time) bool {
	c.malformed = slices.DeleteFunc(append(c.malformed, now), func(at time.Time) bool { return now.Sub(at) > time.Minute })
	return len(c.malformed) < maxMalformed
}

// read reads one message. What is no message is a [message.Fault].
func (c *conn) read() (m message.Message, text []byte, err error) {
	c.admitted = 0
	c.clock.start()
	text, err = c.frames.Next()
	c.clock.stop()
	if err == nil {
		m, err = c.g.reader.Read(text)
	}
	if err != nil && c.admitted > 0 {
		c.room.frames.Release(c.admitted)
	}
	return m, text, err
}

// handle does what a message wants, with the rights that the configuration in force gives
// its sender. What is about the connection, and answers, overtake what is queued.
func (c *conn) handle(m message.Message, text []byte) bool {
	class := m.Type.Class()
	if class == message.Asks || class == message.Tells || m.Type == message.MessageStatus {
		return c.enqueue(m, text) == nil
	}
	defer c.release(text)
	caller, err := c.g.Runtime.Renew(c.caller)
	if err != nil {
		c.refuse(m, &fault{code: codeAuth, text: notLetIn})
		return false
	}
	if class == message.Answers {
		c.answered(caller, m, text)
		return true
	}
	return c.control(caller, m)
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

// notLetIn is the reason for a peer whose partner has left the configuration.
const notLetIn = "the peer is not let in any more"

// beat sends heartbeats (I-055), and ends the connection of a peer that has no rights left.
func (c *conn) beat() {
	tick := time.NewTicker(c.g.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := c.g.Runtime.Renew(c.caller); err != nil {
				_ = c.tell(message.ConnectionClose, message.Message{}, map[string]any{"reason": notLetIn})
				c.end(errAway)
				return
			}
			if c.tell(message.Heartbeat, message.Message{}, struct{}{}) != nil {
				c.end(errAway)
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}
