package iacp

import (
	"fmt"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// errManyAsks refuses a message that would wait for an answer beside as many as may.
var errManyAsks = fmt.Errorf("%d messages of the connection wait for answers: %w", maxConnAsks, gateway.ErrBusy)

// take hands a message to the runtime and acknowledges it. It returns a question that is to be answered
// when there is an answer (I-026).
func (c *conn) take(caller gateway.Caller, m message.Message, text []byte) *question {
	needsAnswer := m.Owed()
	alone, holdsAck := false, false
	if needsAnswer {
		begun := false
		if begun, alone, holdsAck = c.begin(); !begun {
			c.refuse(m, errManyAsks)
			return nil
		}
	}
	x, n, relayed, err := c.g.accept(c.ctx, caller, m, text)
	c.g.record(caller, m, text, x, err)
	if err != nil {
		c.refuse(m, err)
		if needsAnswer {
			c.done()
		}
		return nil
	}
	begins := c.g.conns.speaks(c, m.Sender.ID)
	c.acknowledgeQuestion(m, holdsAck && !relayed && !x.Duplicate && !n.HandedOn)
	if begins {
		c.sendWaiting(caller, m.Sender.ID)
	}
	switch {
	case needsAnswer && (relayed || !c.beginWait(x.ID, x.Duplicate)): // its receiver answers it, or this connection waits already
		c.done()
	case needsAnswer:
		q := &question{caller: caller, head: headOf(m), x: x, until: m.Deadline(x.Accepted), taken: time.Now(), alone: alone}
		if !x.Duplicate {
			q.note = &n
		}
		return q
	}
	return nil
}

// sendWaiting sends what waits for an agent that is at the other end, and the unsent answers to it.
func (c *conn) sendWaiting(caller gateway.Caller, agent string) {
	c.g.relays.send(caller, agent)
	c.pushUnsent(caller, agent)
}

// begin counts a message that will be answered, if there is a place for it, and returns whether it is
// alone and whether its acknowledgement is held. The worker of the queue calls it.
func (c *conn) begin() (begun, alone, holdsAck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks+c.unsent >= maxConnAsks {
		return false, false, false
	}
	alone, holdsAck = c.asks == 0, c.rhythm.asks(c.asks, c.g.AckDelay)
	c.asks++
	c.running.Add(1)
	return true, alone, holdsAck
}

func (c *conn) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks--
	c.freePlace()
	c.running.Done()
	if c.leaving && c.asks == 0 {
		c.end(nil)
	}
}
