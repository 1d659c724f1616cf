package iacp

import (
	"cmp"
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
	"skep/host/internal/swarm"
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
		err := c.g.saveUnsent(ctx, caller, agent, x, by)
		switch {
		case err == nil:
			if other := c.g.speaker(caller, agent); other != nil && other != c {
				other.pushUnsent(caller, agent)
			}
			return
		case errors.Is(err, swarm.ErrErasing), errors.Is(err, gateway.ErrUnknown): // there is no answer any more
			return
		case !gateway.Pause(ctx, c.g.FirstPause):
			c.g.Log.Warn("iacp: an answer is not pushed later: its asker has to ask again", "realm", caller.Realm, "message", x.ID, "error", err)
			return
		}
	}
}

// saveUnsent writes the record of an unsent answer, unless an erasure has removed its message.
func (g *Gateway) saveUnsent(ctx context.Context, caller gateway.Caller, agent string, x gateway.Exchange, by time.Time) error {
	if _, err := g.Runtime.Find(ctx, caller, x.ID); err != nil {
		return err
	}
	_, err := state.Save(ctx, g.Runtime.State(), unsentKey(caller, agent, x), 0, unsentAnswer{x.ID, by}, unsentLife)
	if errors.Is(err, state.ErrVersion) { // it is kept already
		return nil
	}
	return err
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.pushes[agent]; running {
		c.pushes[agent] = true
		return
	}
	if c.pushes == nil {
		c.pushes = map[string]bool{}
	}
	c.pushes[agent] = false
	c.g.pushing.Go(func() {
		for again := true; again; again = c.endPush(agent) {
			_ = c.retry(c.ctx, "unsent answers wait", func() error { return c.pushAllUnsent(caller, agent) }) // it ends with the connection
		}
	})
}

// endPush notes that the unsent answers to an agent were pushed. It returns true where others
// may have been kept meanwhile.
func (c *conn) endPush(agent string) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if again = c.pushes[agent] && c.ctx.Err() == nil; again {
		c.pushes[agent] = false
	} else {
		delete(c.pushes, agent)
	}
	return again
}

// pushAllUnsent pushes in the order of the questions. A record that cannot be pushed now keeps
// none behind it.
func (c *conn) pushAllUnsent(caller gateway.Caller, agent string) (failed error) {
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
				return failed
			}
			failed = cmp.Or(failed, c.push(caller, r))
			if err := context.Cause(c.ctx); err != nil {
				return err
			}
			after = r.Key
		}
		if len(list) < unsentPage {
			return failed
		}
	}
}

// push writes an unsent answer. One that is not there yet is waited for in the background,
// once on a connection, where it has a place.
func (c *conn) push(caller gateway.Caller, r state.Record) error {
	var o unsentAnswer
	if err := json.Unmarshal(r.Value, &o); err != nil {
		c.g.Log.Warn("iacp: the record of an unsent answer cannot be read", "realm", r.Key.Realm, "record", r.Key.Name, "error", err)
		return nil
	}
	x, err := c.g.Runtime.Find(c.ctx, caller, o.ID)
	var a gateway.Answer
	ready := false
	if err == nil {
		a, ready, err = c.g.Runtime.Look(c.ctx, x)
	}
	if errors.Is(err, gateway.ErrUnknown) { // it is kept no more
		c.removeUnsent(r.Key)
		return nil
	} else if err != nil {
		return err
	}
	n, err := noteOf(x)
	if err != nil {
		c.g.Log.Warn("iacp: what an unsent answer needs cannot be read", "realm", r.Key.Realm, "message", x.ID, "error", err)
		return nil
	}
	if !c.beginWait(x.ID, false) {
		return nil
	}
	m := message.Message{ID: n.ID, Type: n.Type, Sender: message.Agent{ID: n.Sender}, Recipient: &message.Recipient{ID: n.Receiver}, Conversation: n.Conversation}
	x.Duplicate = true // how the question ended was counted, or is not known
	deliver := c.deliverMessage
	if n.HandedOn {
		deliver = nil
	}
	write := func() {
		if c.answer(question{caller: caller, head: m, x: x, until: o.By, note: &n}, deliver) {
			c.removeUnsent(r.Key)
		}
	}
	if ready && a.Outcome != gateway.NeedsInput {
		write()
		return nil
	}
	if err := c.acquirePlace(); err != nil {
		c.endWait(x.ID)
		return err
	}
	c.g.pushing.Go(func() {
		defer c.releasePlace()
		write()
	})
	return nil
}

// acquirePlace counts an unsent answer among the messages of the connection that wait for
// answers. It waits for one.
func (c *conn) acquirePlace() error {
	for {
		c.mu.Lock()
		if c.asks+c.unsent < maxConnAsks {
			c.unsent++
			c.mu.Unlock()
			return nil
		}
		if c.freed == nil {
			c.freed = make(chan struct{})
		}
		freed := c.freed
		c.mu.Unlock()
		select {
		case <-freed:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

func (c *conn) releasePlace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent--
	c.freePlace()
}

// freePlace wakes what waits for a place. c.mu is held.
func (c *conn) freePlace() {
	if c.freed != nil {
		close(c.freed)
		c.freed = nil
	}
}

// beginWait notes that an answer is waited for on the connection, and returns false where it
// is already. That the question was asked again there is noted.
func (c *conn) beginWait(id string, isRepeat bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if repeated, waits := c.waits[id]; waits {
		c.waits[id] = repeated || isRepeat
		return false
	}
	if c.waits == nil {
		c.waits = map[string]bool{}
	}
	c.waits[id] = false
	return true
}

// endWait forgets the wait for an answer, and reports whether its question was asked again meanwhile.
func (c *conn) endWait(id string) (repeated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	repeated = c.waits[id]
	delete(c.waits, id)
	return repeated
}
