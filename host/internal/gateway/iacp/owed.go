package iacp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/state"
)

// Answers that are owed: the connection of the asker ended before they were written. They are
// pushed on the next connection on which the asker speaks (I-057).

const (
	owedKind = "push"
	owedLife = 30 * 24 * time.Hour
	owedPage = 100              // records
	oweTime  = 10 * time.Second // to write a record while the host stops
)

// owed is the record of an answer that is owed.
type owed struct {
	// ID is the id of the message, By when its asker waits no more.
	ID string    `json:"id"`
	By time.Time `json:"by,omitzero"`
}

// owedPrefix begins the names of what is owed to an agent.
func owedPrefix(agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return hex.EncodeToString(sum[:16]) + "/"
}

// owedKey is the key of an answer: those for an agent are in the order of their messages.
func owedKey(c gateway.Caller, agent string, x gateway.Exchange) state.Key {
	sum := sha256.Sum256([]byte(x.ID))
	return state.Key{
		Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: owedKind,
		Name: fmt.Sprintf("%s%019d-%x", owedPrefix(agent), x.Accepted.UnixMicro(), sum[:8]),
	}
}

// owe records that the answer to an agent's message was not written, and pushes it where the
// agent is there again.
func (c *conn) owe(caller gateway.Caller, agent string, x gateway.Exchange, by time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), oweTime)
	defer cancel()
	for {
		_, err := state.Save(ctx, c.g.Runtime.State(), owedKey(caller, agent, x), 0, owed{x.ID, by}, owedLife)
		if err == nil || errors.Is(err, state.ErrVersion) { // it is owed already
			break
		}
		if !gateway.Pause(ctx, c.g.FirstPause) {
			c.g.Log.Warn("iacp: an answer is not pushed later: its asker has to ask again", "realm", caller.Realm, "message", x.ID, "error", err)
			return
		}
	}
	if other := c.g.speaker(caller, agent); other != nil && other != c {
		other.pushOwed(caller, agent)
	}
}

// settle removes the record of an answer that was written.
func (c *conn) settle(key state.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), oweTime)
	defer cancel()
	if err := c.g.Runtime.State().Delete(ctx, key, 0); err != nil {
		c.g.Log.Warn("iacp: an answer may be pushed twice", "realm", key.Realm, "error", err)
	}
}

// pushOwed pushes what is owed to an agent on its connection, in the background. What a
// failing store has held up is tried again.
func (c *conn) pushOwed(caller gateway.Caller, agent string) {
	c.g.pushing.Go(func() {
		for {
			err := c.pushAll(caller, agent)
			if err == nil || c.ctx.Err() != nil {
				return
			}
			c.g.Log.Warn("iacp: answers wait for the store", "realm", caller.Realm, "agent", agent, "error", err)
			if !gateway.Pause(c.ctx, c.g.FirstPause) {
				return
			}
		}
	})
}

func (c *conn) pushAll(caller gateway.Caller, agent string) error {
	of := owedKey(caller, agent, gateway.Exchange{})
	after := of
	after.Name = owedPrefix(agent)
	for {
		list, err := c.g.Runtime.State().List(c.ctx, of, after, owedPage)
		if err != nil {
			return err
		}
		for _, r := range list {
			if !strings.HasPrefix(r.Key.Name, owedPrefix(agent)) {
				return nil
			}
			if err := c.push(caller, r); err != nil {
				return err
			}
			after = r.Key
		}
		if len(list) < owedPage {
			return nil
		}
	}
}

// push writes an answer that is owed. One that is not there yet is waited for in the
// background, once on a connection.
func (c *conn) push(caller gateway.Caller, r state.Record) error {
	var o owed
	err := json.Unmarshal(r.Value, &o)
	if err != nil {
		return err
	}
	x, err := c.g.Runtime.Find(c.ctx, caller, o.ID)
	if errors.Is(err, gateway.ErrUnknown) { // it is kept no more
		c.settle(r.Key)
		return nil
	} else if err != nil {
		return err
	}
	var n note
	if err := json.Unmarshal(x.Note, &n); err != nil {
		return err
	}
	if !c.beginWait(x.ID) {
		return nil
	}
	m := message.Message{ID: n.ID, Type: n.Type, Sender: message.Agent{ID: n.Sender}, Recipient: &message.Recipient{ID: n.Receiver}, Conversation: n.Conversation}
	write := func() {
		if c.answer(caller, m, x, o.By, c.deliverMessage) {
			c.settle(r.Key)
		}
	}
	a, ok, err := c.g.Runtime.Look(c.ctx, x)
	if err != nil || !ok || a.Outcome == gateway.NeedsInput {
		c.g.pushing.Go(write)
		return nil
	}
	write()
	return context.Cause(c.ctx)
}

// beginWait notes that an answer is waited for on the connection, and returns false where it
// is already.
func (c *conn) beginWait(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits[id] {
		return false
	}
	if c.waits == nil {
		c.waits = map[string]bool{}
	}
	c.waits[id] = true
	return true
}

func (c *conn) endWait(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, id)
}
