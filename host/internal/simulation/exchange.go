package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// realmName is the realm that asks through the gateway of simDoor. No way leads to it.
const (
	realmName = "far"
	simDoor   = swarm.GatewayDoor + "sim"
)

// exchange is a message of the realm, whose answer a host holds.
type exchange struct {
	in   swarm.Incoming
	mark string
	// The ledger's lock guards what follows.
	receipt *swarm.Receipt
	// gone is set when an erasure or a pruning may have taken it.
	gone bool
	// waits is set while the client waits for the answer; answers are the cursors of those
	// that it got.
	waits   bool
	answers []int64
}

// hold asks through the gateway until a host has accepted or refused it, and waits for the
// answer beside the next action.
func (c *client) hold(tenant string) {
	x := c.newExchange(tenant)
	l := c.world.ledger
	removals := l.countRemovals()
	for range 30 {
		h := c.park("hold " + tenant + "/" + x.in.Wrapper.Payload.TaskID + " " + x.mark)
		if h == nil {
			return
		}
		c.world.count("hold")
		got, err := h.receive(context.Background(), x.in)
		c.world.sched.trace.note("%s: hold %s: %v", c.name, x.mark, err)
		if err == nil {
			l.hold(x, got.Exchanges[0], removals)
			c.waitHeld(h, x)
			if c.rng.IntN(8) == 0 {
				c.withdraw(x)
			}
			return
		}
		if isRefusal(err) {
			return
		}
		time.Sleep(time.Duration(200+c.rng.IntN(5000)) * time.Millisecond)
	}
}

func (c *client) newExchange(tenant string) *exchange {
	p := &plan{Mark: c.mark(), Steps: slices.DeleteFunc(c.steps(1), func(s step) bool { return s.Do == "human" })}
	id := fmt.Sprintf("2c9d0000-0000-4000-8000-%012d", c.rng.IntN(1e9))
	owner := "swarm:" + realmName + "@" + realmName
	return &exchange{mark: p.Mark, in: swarm.Incoming{
		Door: simDoor, Peer: realmName, Swarm: swarmName, Hops: 1, Brief: c.rng.IntN(4) > 0, Keep: 30 * 24 * time.Hour,
		Principal: swarm.Principal{Tenant: tenant, Role: mail.RoleSwarm, ID: realmName},
		Wrapper: mail.Interswarm{
			MessageID: id, SourceSwarm: realmName, TargetSwarm: swarmName, Timestamp: mail.FormatTime(time.Now()),
			Type: mail.Request, TaskOwner: owner, TaskContributors: []string{owner},
			Payload: mail.Payload{
				TaskID: fmt.Sprintf("h%d", c.rng.IntN(4)), ID: id, Sender: mail.Address{Type: mail.Agent, Name: "chief@" + realmName},
				Recipients: []mail.Address{{Type: mail.Agent, Name: []string{"boss@", "math@"}[c.rng.IntN(2)] + swarmName}},
				Subject:    "do", Body: p.text(), RecipientSwarms: []string{swarmName},
			},
		},
	}}
}

// withdraw cancels an exchange.
func (c *client) withdraw(x *exchange) {
	h := c.park("withdraw " + x.mark)
	if h == nil {
		return
	}
	c.world.count("withdraw")
	err := h.rt.CancelExchange(context.Background(), c.world.ledger.heldReceipt(x), "chief")
	c.world.sched.trace.note("%s: withdraw %s: %v", c.name, x.mark, err)
}

// waitHeld waits for the answer of an exchange, on later hosts too.
func (c *client) waitHeld(h *host, x *exchange) {
	l := c.world.ledger
	l.setHeldWaits(x, true)
	c.world.clients.Go(func() {
		defer l.setHeldWaits(x, false)
		var seen []string
		for {
			s, err := h.rt.WaitExchange(l.over, l.heldReceipt(x), seen)
			c.world.sched.trace.note("%s: held answer to %s: %s %d %v", c.name, x.mark, s.Answer.State, len(s.Needs), err)
			switch {
			case err == nil && s.Answer.Cursor > 0:
				c.world.count("held answer " + string(s.Answer.State))
				l.heldAnswer(x, s.Answer.Cursor)
				return
			case err == nil:
				seen = s.Needs
			case isRefusal(err):
				return
			default:
				if h = c.holdAgain(x); h == nil {
					return
				}
			}
		}
	})
}

// holdAgain asks again under the same id, and returns the host that knows the message, or
// nil when no answer is due any more.
func (c *client) holdAgain(x *exchange) *host {
	l := c.world.ledger
	for {
		time.Sleep(time.Second)
		c.world.sched.park("hold again "+x.mark, stepGate, nil)
		h := c.world.living()
		if h == nil || l.isHeldGone(x) || l.over.Err() != nil {
			return nil
		}
		got, err := h.receive(context.Background(), x.in)
		switch {
		case isRefusal(err):
			return nil
		case err != nil:
			continue
		}
		if !l.holdAgain(x, got) {
			c.world.violate("message %s was accepted, and is accepted as new under the same id", x.mark)
		}
		return h
	}
}

// hold notes that a host has accepted a message of the realm.
func (l *ledger) hold(x *exchange, r *swarm.Receipt, removals int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.receipt, x.gone = r, removals != l.removals
	l.exchanges = append(l.exchanges, x)
}

// holdAgain notes that a host has accepted it again, and reports whether it may do so as
// if it were new.
func (l *ledger) holdAgain(x *exchange, got swarm.IncomingReceipt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.receipt = got.Exchanges[0]
	return got.Duplicate || x.gone || l.pruned
}

func (l *ledger) heldReceipt(x *exchange) *swarm.Receipt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.receipt
}

func (l *ledger) isHeldGone(x *exchange) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.gone
}

func (l *ledger) setHeldWaits(x *exchange, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.waits = waits
}

// heldAnswer notes the event that a client got as the answer.
func (l *ledger) heldAnswer(x *exchange, cursor int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.answers = append(x.answers, cursor)
}

// checkExchange checks that an accepted message of the realm has one answer, or is still
// being worked on.
func (w *world) checkExchange(x *exchange) {
	ctx := context.Background()
	if x.gone || w.ledger.pruned {
		return
	}
	key := x.receipt.Task
	sub, err := w.host.store.Store.Submission(ctx, key.InstanceKey, simDoor, x.receipt.Submission().Key)
	if err != nil {
		w.violate("message %s was accepted for task %s, and is lost: %v", x.mark, short(key), err)
		return
	}
	if sub.Answer > 0 && x.waits {
		w.violate("message %s has an answer, and its sender still waits", x.mark)
	}
	if len(x.answers) > 0 && x.answers[0] != sub.Answer {
		w.violate("message %s was answered by event %d, and now by %d", x.mark, x.answers[0], sub.Answer)
	}
	responses := w.responses(key, x.in.Wrapper.Payload.ID)
	if len(responses) > 1 || len(responses) == 1 && responses[0] != sub.Answer {
		w.violate("message %s is answered by event %d, and its responses are %v", x.mark, sub.Answer, responses)
	}
}

// responses are the events of the responses to a request of the realm.
func (w *world) responses(key swarm.TaskKey, id string) (list []int64) {
	for after := int64(0); ; {
		page, err := w.host.store.Store.Events(context.Background(), key, after, 100)
		w.must(err)
		if len(page) == 0 {
			return list
		}
		for _, e := range page {
			after = e.Seq
			var extra struct {
				Message mail.Message `json:"full_message"`
			}
			if e.Name == "new_message" && json.Unmarshal(e.Extra, &extra) == nil && extra.Message.Type == mail.Response && extra.Message.Payload.ID == id {
				list = append(list, e.Seq)
			}
		}
	}
}
