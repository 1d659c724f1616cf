package iacp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
	"skep/host/internal/gateway/mailbox"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/wire"
)

// relays hand messages on between the members of realms (I-028): a message waits in the
// mailbox of its receiver until that has acknowledged it.
type relays struct {
	g     *Gateway
	boxes *mailbox.Boxes

	mu sync.Mutex
	// running are the members whose messages are being sent, true for one that got another
	// message meanwhile.
	running map[memberKey]bool
	sending sync.WaitGroup
}

type memberKey struct {
	realm realmKey
	agent string
}

func newRelays(g *Gateway) *relays {
	r := &relays{g: g, running: map[memberKey]bool{}}
	r.boxes = mailbox.New(g.Runtime.State(), Name, r.readEntry)
	return r
}

// member returns the realm of which a foreign agent is a member, as its caller, if the
// sender's realm may send to it: its own realm, or where one of both is a hub, another one of
// the tenant.
func (r *relays) member(c gateway.Caller, agent string) (of gateway.Caller, is bool) {
	own, isPartner := r.g.Runtime.Partner(c.Realm)
	switch {
	case !isPartner || !c.May.Has(gateway.MayRelay):
		return of, false
	case own.Owns(agent):
		return c, true
	}
	for _, p := range r.g.Partners() {
		if p.Name != own.Name && p.Tenant == own.Tenant && p.Owns(agent) && p.May.Has(gateway.MayRelay) && (isHub(p) || isHub(own)) {
			return p.Caller(), true
		}
	}
	return of, false
}

// isHub reports whether the agents of a partner, and members of others, reach each other.
func isHub(p gateway.Partner) bool {
	hub, _ := p.Options["hub"].(bool)
	return hub
}

// keep makes a message for a member durable, and lets it go out. Only the count of its hops is
// changed.
func (r *relays) keep(ctx context.Context, from, to gateway.Caller, agent string, m message.Message, text []byte) (duplicate bool, err error) {
	relayed := gateway.Relayed{From: m.Sender.ID, To: agent, Hops: m.Meta().Hops}
	if to.Realm != from.Realm {
		relayed.Realm = to.Realm
	}
	if err := r.g.Runtime.CheckRelay(from, relayed); err != nil {
		return false, err
	}
	if text, err = withHops(text, relayed.Hops+1); err != nil {
		return false, err
	}
	if len(text) > state.MaxValue {
		return false, &fault{code: codeInvalid, reason: reasonTooLarge, text: fmt.Sprintf("a message that is handed on has at most %d bytes, and this one has %d", state.MaxValue, len(text))}
	}
	e, err := r.entryOf(m, text)
	if err != nil {
		return false, err
	}
	e.Receiver = agent
	duplicate, err = r.boxes.Put(ctx, to, e, text)
	if err == nil {
		r.send(to, agent)
	}
	return duplicate, err
}

// withHops sets the count of hops of a message and leaves all else as it is.
func withHops(text []byte, hops int) ([]byte, error) {
	var members, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	if raw := members["metadata"]; raw != nil {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, err
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	delete(metadata, "auth") // it is shown to this host
	metadata["hops"] = json.RawMessage(strconv.Itoa(hops))
	var err error
	if members["metadata"], err = wire.Encode(metadata); err != nil {
		return nil, err
	}
	return wire.Encode(members)
}

func (r *relays) entryOf(m message.Message, text []byte) (e mailbox.Entry, err error) {
	canonical, err := wire.Canonical(text, wire.AsSent, r.g.MaxDepth+1, "metadata")
	return mailbox.Entry{Receiver: m.To(), ID: m.ID, Digest: sha256.Sum256(canonical)}, err
}

func (r *relays) readEntry(text []byte) (e mailbox.Entry, err error) {
	m, err := r.g.reader.Read(text)
	if err == nil {
		e, err = r.entryOf(m, text)
	}
	return e, err
}

// send sends the messages that wait for a member, unless that is being done.
func (r *relays) send(to gateway.Caller, agent string) {
	key := memberKey{realmOf(to), agent}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, running := r.running[key]; running {
		r.running[key] = true
		return
	}
	if c := r.g.speaker(to, agent); c != nil {
		r.running[key] = false
		r.sending.Go(func() { r.sendAll(key, to, agent) })
	}
}

// speaker returns the connection that leads to a member, nil for none.
func (g *Gateway) speaker(to gateway.Caller, agent string) *conn {
	p, _ := g.Runtime.Partner(to.Realm)
	return g.conns.speaker(to, agent, isHub(p))
}

// sendAll sends until nothing waits, or the member has gone and has not come back. What a
// failing store has held up is tried again while the member is there.
func (r *relays) sendAll(key memberKey, to gateway.Caller, agent string) {
	for {
		sent, err := r.sendSome(to, agent)
		if err != nil && !errors.Is(err, errAway) {
			r.g.Log.Warn("iacp: messages for a member wait", "realm", to.Realm, "agent", agent, "error", err)
			if c := r.g.speaker(to, agent); c != nil {
				sent, err = gateway.Pause(c.ctx, r.g.FirstPause), nil
			}
		}
		r.mu.Lock()
		if again := r.running[key]; !again && (err != nil || !sent) {
			delete(r.running, key)
			r.mu.Unlock()
			return
		}
		r.running[key] = false
		r.mu.Unlock()
	}
}

// sendSome sends the oldest messages for a member in their order, and removes those that it
// has acknowledged.
func (r *relays) sendSome(to gateway.Caller, agent string) (sent bool, err error) {
	c := r.g.speaker(to, agent)
	if c == nil {
		return false, errAway
	}
	list, _, err := r.boxes.Read(c.ctx, to, agent, 0)
	if err != nil {
		return false, err
	}
	for _, one := range list {
		m, err := r.g.reader.Read(one.Value)
		if err != nil { // its limits have become narrower
			m.ID = ""
		} else if err = c.deliver(agent, m.ID, m.Type, one.Value); errors.Is(err, errUnacknowledged) && m.Type.Class() != message.Answers {
			if err := r.giveUp(context.WithoutCancel(c.ctx), to, agent, m); err != nil {
				return false, err
			}
		} else if err != nil {
			return false, err
		}
		event := gateway.Event{Caller: to, Foreign: m.ID, Type: string(m.Type), Out: true, Text: one.Value}
		r.g.Runtime.Record(event.WithOutcome(false, err))
		if err := r.boxes.Remove(context.WithoutCancel(c.ctx), to, one); err != nil { // the member has it, though it may have left
			return false, err
		}
	}
	return len(list) > 0, nil
}

// giveUp puts into the sender's mailbox that a message was not acknowledged (I-027).
func (r *relays) giveUp(ctx context.Context, to gateway.Caller, agent string, m message.Message) error {
	sender, is := r.member(to, m.Sender.ID)
	if !is {
		return nil
	}
	f := &fault{code: codeTimeout, text: fmt.Sprintf("%s did not acknowledge the message after %d attempts", agent, maxTries), retry: true}
	no := message.New(message.ErrorResponse, agent, f.payload())
	no.ID, no.Parent, no.Conversation, no.Recipient = ownID("silent", to, m.ID+"\x00"+agent), m.ID, m.Conversation, &message.Recipient{ID: m.Sender.ID}
	return r.refuse(ctx, sender, no)
}

// keepAnswer makes an answer for a member durable, or in the place of one that is too long an error.
func (r *relays) keepAnswer(ctx context.Context, from, to gateway.Caller, m message.Message, text []byte) error {
	_, err := r.keep(ctx, from, to, m.To(), m, text)
	f := new(fault)
	if !errors.As(err, &f) || f.reason != reasonTooLarge {
		return err
	}
	no := message.New(message.ErrorResponse, m.Sender.ID, f.payload())
	no.ID, no.Parent, no.Conversation, no.Recipient = ownID("long", from, m.ID), m.Parent, m.Conversation, m.Recipient
	return cmp.Or(r.refuse(ctx, to, no), err)
}

// refuse puts an error into a member's mailbox.
func (r *relays) refuse(ctx context.Context, to gateway.Caller, no message.Message) error {
	text, err := r.g.encode(to, no)
	if err != nil {
		return err
	}
	e, err := r.entryOf(no, text)
	if err != nil {
		return err
	}
	e.Receiver = no.To()
	_, err = r.boxes.Put(ctx, to, e, text)
	switch {
	case errors.Is(err, state.ErrFull), errors.Is(err, gateway.ErrBusy): // the message would stay, and end each connection of its receiver
		r.g.Log.Warn("iacp: a member is not told what became of its message", "realm", to.Realm, "agent", no.To(), "message", no.Parent, "error", err)
		return nil
	case err != nil && !errors.Is(err, gateway.ErrConflict): // with one, an attempt before has put it there
		return err
	}
	r.send(to, no.To())
	return nil
}
