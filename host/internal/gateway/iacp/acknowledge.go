package iacp

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
	// settle is called once, when it came or will not come; nil where a goroutine waits for came. retry
	// is its timer.
	settle func(error)
	retry  *time.Timer
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
	ack := &expectedAck{agent: agent, came: make(chan struct{})}
	if err := c.expectAck(id, ack); err != nil {
		return err
	}
	return c.try(ack, id, t, text, maxTries)
}

// try writes a message until it is acknowledged, at most so many times.
func (c *conn) try(ack *expectedAck, id string, t message.Type, text []byte, tries int) error {
	defer c.forgetAck(id, ack)
	for range tries {
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

// deliverLater is [conn.deliver] for an answer, without a goroutine that waits: settle is called once with
// the result, perhaps before it returns. With an error it is not called.
func (c *conn) deliverLater(agent, id string, text []byte, settle func(error)) error {
	if !c.acks {
		if err := c.writeText(text); err != nil {
			return err
		}
		settle(nil)
		return nil
	}
	ack := &expectedAck{agent: agent, came: make(chan struct{}), settle: settle}
	by := c.clock.now() + c.g.Ack
	ack.retry = time.AfterFunc(c.g.Ack, func() { c.deliverAgain(ack, id, text, by) })
	if err := c.expectAck(id, ack); err != nil {
		ack.retry.Stop()
		return err
	}
	if err := c.writeText(text); err != nil && c.forgetAck(id, ack) {
		ack.retry.Stop()
		return err
	}
	return nil
}

// deliverAgain writes an answer again that was not acknowledged by a time of the clock.
func (c *conn) deliverAgain(ack *expectedAck, id string, text []byte, by time.Duration) {
	c.mu.Lock()
	n := slices.Index(c.unacked[id], ack)
	if n < 0 {
		c.mu.Unlock()
		return
	}
	if left := by - c.clock.now(); left > 0 {
		ack.retry.Reset(max(left, c.g.Ack/timerChecks))
		c.mu.Unlock()
		return
	}
	again := &expectedAck{agent: ack.agent, came: ack.came}
	c.unacked[id][n] = again // deliverLater, whose write may fail after this, does not find ack
	c.mu.Unlock()
	ack.settle(c.try(again, id, message.TaskResponse, text, maxTries-1))
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

// expectAck notes that an acknowledgement is waited for, unless none can come any more.
func (c *conn) expectAck(id string, ack *expectedAck) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil || isClosed(c.readEnded) {
		return errAway
	}
	if c.unacked == nil {
		c.unacked = map[string][]*expectedAck{}
	}
	c.unacked[id] = append(c.unacked[id], ack)
	return nil
}

// forgetAck reports whether an acknowledgement was waited for.
func (c *conn) forgetAck(id string, ack *expectedAck) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := slices.Index(c.unacked[id], ack)
	if n >= 0 {
		c.removeAck(id, n)
	}
	return n >= 0
}

// failUnacked settles the answers whose acknowledgements cannot come any more.
func (c *conn) failUnacked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, list := range c.unacked {
		for _, ack := range list {
			if ack.settle != nil {
				ack.retry.Stop()
				go ack.settle(errAway)
			}
		}
		c.unacked[id] = slices.DeleteFunc(list, func(a *expectedAck) bool { return a.settle != nil })
		if len(c.unacked[id]) == 0 {
			delete(c.unacked, id)
		}
	}
}

// removeAck removes the nth wait for the acknowledgement of an id. c.mu is held.
func (c *conn) removeAck(id string, n int) {
	if c.unacked[id] = slices.Delete(c.unacked[id], n, n+1); len(c.unacked[id]) == 0 {
		delete(c.unacked, id)
	}
}

// noteAck takes an acknowledgement. Of several messages of one id, which are for several agents,
// it is for its sender's, or else for the first.
func (c *conn) noteAck(id, from string) {
	if ack := c.findAcked(id, from); ack != nil && ack.settle != nil {
		ack.retry.Stop()
		ack.settle(nil)
	}
}

// findAcked returns what an acknowledgement is for, nil for nothing. It is waited for no more.
func (c *conn) findAcked(id, from string) *expectedAck {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.unacked[id]
	if len(list) == 0 {
		return nil
	}
	n := max(0, slices.IndexFunc(list, func(a *expectedAck) bool { return a.agent == from }))
	ack := list[n]
	close(ack.came)
	c.removeAck(id, n)
	return ack
}
