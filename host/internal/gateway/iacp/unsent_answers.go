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

// An unsent answer is one whose asker's connection ended before it was written. It is written
// on the next connection on which the asker registers or sends (I-057).

const (
	unsentKind = "push"
	unsentLife = 30 * 24 * time.Hour
	unsentPage = 100              // records
	recordTime = 10 * time.Second // to write a record while the host stops
)

// unsentAnswer is the record of an unsent answer.
type unsentAnswer struct {
	// ID is the id of the question, By when its asker waits no more, zero for never.
	ID string    `json:"id"`
	By time.Time `json:"by,omitzero"`
}

// unsentPrefix begins the names of the unsent answers to an agent.
func unsentPrefix(agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return hex.EncodeToString(sum[:16]) + "/"
}

// unsentKey is the key of an answer: those for an agent are in the order of their messages.
func unsentKey(c gateway.Caller, agent string, x gateway.Exchange) state.Key {
	sum := sha256.Sum256([]byte(x.ID))
	return state.Key{
		Tenant: c.Principal.Tenant, Gateway: Name, Realm: c.Realm, Kind: unsentKind,
		Name: fmt.Sprintf("%s%019d-%x", unsentPrefix(agent), x.Accepted.UnixMicro(), sum[:8]),
	}
}

// keepUnsent records that the answer to an agent's message was not written, and pushes it where the
// agent is there again.
func (c *conn) keepUnsent(caller gateway.Caller, agent string, x gateway.Exchange, by time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), recordTime)
	defer cancel()
	for {
		_, err := state.Save(ctx, c.g.Runtime.State(), unsentKey(caller, agent, x), 0, unsentAnswer{x.ID, by}, unsentLife)
		if err == nil || errors.Is(err, state.ErrVersion) { // it is kept already
			break
		}
		if !gateway.Pause(ctx, c.g.FirstPause) {
			c.g.Log.Warn("iacp: an answer is not pushed later: its asker has to ask again", "realm", caller.Realm, "message", x.ID, "error", err)
			return
		}
	}
	if other := c.g.speaker(caller, agent); other != nil && other != c {
		other.pushUnsent(caller, agent)
	}
}

// removeUnsent removes the record of an answer that was written.
func (c *conn) removeUnsent(key state.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), recordTime)
	defer cancel()
	if err := c.g.Runtime.State().Delete(ctx, key, 0); err != nil {
		c.g.Log.Warn("iacp: an answer may be pushed twice", "realm", key.Realm, "error", err)
	}
}

// pushUnsent pushes the unsent answers to an agent on its connection, in the background. What a
// failing store has held up is tried again.
func (c *conn) pushUnsent(caller gateway.Caller, agent string) {
	c.g.pushing.Go(func() {
		for {
			err := c.pushAllUnsent(caller, agent)
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

func (c *conn) pushAllUnsent(caller gateway.Caller, agent string) error {
	of := unsentKey(caller, agent, gateway.Exchange{})
	after := of
	after.Name = unsentPrefix(agent)
	for {
		list, err := c.g.Runtime.State().List(c.ctx, of, after, unsentPage)
		if err != nil {
			return err
		}
		for _, r := range list {
			if !strings.HasPrefix(r.Key.Name, unsentPrefix(agent)) {
				return nil
			}
			if err := c.push(caller, r); err != nil {
				return err
			}
			after = r.Key
		}
		if len(list) < unsentPage {
			return nil
		}
	}
}

// push writes an unsent answer. One that is not there yet is waited for in the
// background, once on a connection.
func (c *conn) push(caller gateway.Caller, r state.Record) error {
	var o unsentAnswer
	err := json.Unmarshal(r.Value, &o)
	if err != nil {
		return err
	}
	x, err := c.g.Runtime.Find(c.ctx, caller, o.ID)
	if errors.Is(err, gateway.ErrUnknown) { // it is kept no more
		c.removeUnsent(r.Key)
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
			c.removeUnsent(r.Key)
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
