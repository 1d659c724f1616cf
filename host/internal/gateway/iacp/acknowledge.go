package iacp

import (
	"errors"
	"fmt"
	"slices"

	"skep/host/internal/gateway/iacp/message"
)

// maxTries is how often a message is written on a connection before it is given up (I-027).
const maxTries = 3

// errUnacknowledged is returned for a message that the peer does not acknowledge.
var errUnacknowledged = fmt.Errorf("the peer did not acknowledge a message after %d attempts", maxTries)

// expectedAck is what waits for the acknowledgement of a message to an agent.
type expectedAck struct {
	agent string
	came  chan struct{}
}

// deliver writes an answer, or a message of another member, to an agent, and waits for its
// acknowledgement where the peer sends them. A message that is not acknowledged in time is
// written again; then the connection ends (I-027). An error is written once: there are peers that
// acknowledge none.
func (c *conn) deliver(agent, id string, t message.Type, text []byte) error {
	switch {
	case c.ctx.Err() != nil: // a message before has ended it
		return errAway
	case !c.acks:
		return c.writeText(text)
	}
	ack := c.expectAck(id, agent)
	defer c.forgetAck(id, ack)
	for range maxTries {
		if err := c.writeText(text); err != nil {
			return err
		}
		err := c.awaitAck(ack)
		if errors.Is(err, errTime) && t == message.ErrorResponse {
			return nil
		}
		if !errors.Is(err, errTime) {
			return err
		}
	}
	c.end(errAway)
	return errUnacknowledged
}

// deliverMessage is [conn.deliver] for a message that has no text yet. While it waits, it holds the text
// alone.
func (c *conn) deliverMessage(m message.Message) error {
	agent, id, t := m.To(), m.ID, m.Type
	text, err := c.g.encode(c.caller, m)
	if err != nil {
		return err
	}
	return c.deliver(agent, id, t, text)
}

func (c *conn) awaitAck(ack *expectedAck) error {
	timer := newReadTimer(&c.clock, c.g.Ack)
	defer timer.Stop()
	for {
		select {
		case <-ack.came:
			return nil
		case <-timer.C:
			if timer.isOver() {
				return errTime
			}
			continue
		case <-c.ctx.Done():
		case <-c.readEnded:
		}
		if isClosed(ack.came) { // and the peer left
			return nil
		}
		return errAway
	}
}

func (c *conn) expectAck(id, agent string) *expectedAck {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unacked == nil {
		c.unacked = map[string][]*expectedAck{}
	}
	ack := &expectedAck{agent, make(chan struct{})}
	c.unacked[id] = append(c.unacked[id], ack)
	return ack
}

func (c *conn) forgetAck(id string, ack *expectedAck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeAck(id, slices.Index(c.unacked[id], ack))
}

// removeAck removes the nth wait for the acknowledgement of an id. c.mu is held.
func (c *conn) removeAck(id string, n int) {
	if n < 0 {
		return
	}
	if c.unacked[id] = slices.Delete(c.unacked[id], n, n+1); len(c.unacked[id]) == 0 {
		delete(c.unacked, id)
	}
}

// noteAck takes an acknowledgement. Of several messages of one id, which are for several agents,
// it is for its sender's, or else for the first.
func (c *conn) noteAck(id, from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.unacked[id]
	if len(list) == 0 {
		return
	}
	n := max(0, slices.IndexFunc(list, func(a *expectedAck) bool { return a.agent == from }))
	close(list[n].came)
	c.removeAck(id, n)
}
