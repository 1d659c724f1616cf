package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/verb"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Carry implements [gateway.Carrier]. A question is held until the foreign agent has
// answered it, in the reply to our request or by a message of its own.
func (g *Gateway) Carry(ctx context.Context, p gateway.Partner, d swarm.Delivery) gateway.Carried {
	isResponse := d.Wrapper.Type == mail.Response
	if d.Ending || gateway.ReportsPause(d) || !isResponse && mail.Reserved(d.Wrapper.Payload.Subject) {
		return gateway.Carried{State: gateway.Taken} // the protocol has no word for it
	}
	a := &attempt{g: g, p: p, d: d, caller: p.Caller()}
	err := a.run(ctx)
	event := gateway.Event{
		Caller: a.caller, Foreign: string(a.m.Header.ID), Type: string(a.m.Header.Type), Out: true, Text: a.text, Task: d.Wrapper.Payload.TaskID,
	}
	g.Runtime.Record(event.WithOutcome(false, err))
	return a.outcomeOf(err)
}

func (a *attempt) outcomeOf(err error) gateway.Carried {
	return gateway.CarriedAfter(err).Since(a.tried, a.sent)
}

// attempt carries an outbox message once.
type attempt struct {
	g      *Gateway
	p      gateway.Partner
	d      swarm.Delivery
	caller gateway.Caller
	m      message.Message
	text   []byte
	// thread is where an answer finds its question; theirs means that the foreign agent
	// began the conversation.
	thread state.Key
	theirs bool
	// tried means that sending was begun, sent that the partner has taken the message.
	tried, sent bool
	// trouble is what was wrong last with the place of the answer, nil for nothing.
	trouble error
	// shown is the id of the progress that was shown last.
	shown message.MessageID
}

func (a *attempt) run(ctx context.Context) error {
	if err := a.compose(ctx); err != nil {
		return err
	}
	var err error
	if a.text, err = a.m.MarshalJSON(); err != nil {
		return gateway.Refuse("the message cannot be written: %v", err)
	}
	if declared := a.g.reader.declared; declared != nil {
		if err := checkDeclared(declared, a.text, a.m.Header.Extra); err != nil {
			return gateway.Refuse("the message does not fit dsl of [gateways.acp]: %v", err)
		}
	}
	if answer, _ := a.m.Header.Type.Expects(); answer != "" {
		return a.ask(ctx)
	}
	_, err = a.send(ctx, 0)
	return err
}

// compose makes the message. Its id is the same in each attempt.
func (a *attempt) compose(ctx context.Context) error {
	p := a.d.Wrapper.Payload
	x, err := a.g.Runtime.Asked(ctx, a.caller, a.d)
	known := err == nil
	if err != nil && !errors.Is(err, gateway.ErrUnknown) {
		return err
	}
	if a.d.Wrapper.Type == mail.Response {
		if !known {
			return gateway.Refuse("the message that this answers is kept no more: raise keep in [gateways.acp]")
		}
		return a.composeAnswer(ctx, x)
	}
	agent, err := gateway.RecipientID(p.Recipient().Name)
	if err != nil {
		return err
	}
	conversation := a.d.Conversation
	if known {
		conversation, a.theirs = conversationOf(x), true
	}
	name := threadName(conversation, agent)
	a.thread = threadKey(a.caller.Principal.Tenant, a.caller.Realm, name)
	body := cmp.Or(p.Body, p.Subject)
	a.m = message.Message{Header: message.Header{
		Version: version, Sender: message.AgentID(p.Sender.Name), Receiver: message.AgentID(agent), Type: message.MessageTypeInform,
		ID: message.MessageID(messageID(name, a.d.Wrapper.MessageID)), Timestamp: timestamp(sentAt(a.d)), ContentType: contentTypeOf(body),
		ConversationID: &conversation, Extra: map[string]json.RawMessage{extraHops: wire.MustEncode(a.d.Hops)},
	}, Body: body}
	switch a.d.Wrapper.Type {
	case mail.Interrupt:
		a.m.Header.Extra["x_mail_type"] = wire.MustEncode(string(mail.Interrupt))
		a.m.Header.Type = message.MessageTypeRequest
	case mail.Request:
		a.m.Header.Type = message.MessageTypeRequest
	}
	applyVerb(&a.m, p.RoutingInfo)
	if p.Subject != "" && mail.Printable(p.Subject) {
		a.m.Header.Extra[extraSubject] = wire.MustEncode(p.Subject)
	}
	a.m.Header.Extra = gateway.WithTrace(a.m.Header.Extra, extraPrefix, a.d.Trace)
	maps.Copy(a.m.Header.Extra, headerOf(a.p))
	return nil
}

// applyVerb makes a message what the action that wrote it has said: its type, and which
// message it is about. Mail of an agent stays as it is.
func applyVerb(m *message.Message, routing json.RawMessage) {
	var written struct {
		Gateway struct {
			Verb    string             `json:"type"`
			ReplyTo *message.MessageID `json:"reply_to"`
			Code    string             `json:"code"`
		} `json:"gateway"`
	}
	_ = json.Unmarshal(routing, &written) // another form is no action's
	h, w := &m.Header, written.Gateway
	switch {
	case w.Verb == verb.ACPQuery && h.Type == message.MessageTypeRequest:
		h.Type = message.MessageTypeQuery
	case w.Verb == verb.ACPAcknowledge && h.Type == message.MessageTypeInform:
		h.Type, h.ReplyTo = message.MessageTypeAcknowledge, w.ReplyTo
	case w.Verb == verb.ACPError && h.Type == message.MessageTypeInform:
		h.ReplyTo, h.ContentType = w.ReplyTo, jsonContentType
		setFault(m, &fault{code: cmp.Or(w.Code, codeInternal), text: m.Body})
	}
}

// headerFields is the option `header` of a partner.
type headerFields interface {
	Raw() map[string]json.RawMessage
}

// headerOf returns the header fields of a partner's option, nil for none.
func headerOf(p gateway.Partner) map[string]json.RawMessage {
	own, ok := p.Options["header"].(headerFields)
	if !ok {
		return nil
	}
	return own.Raw()
}

// composeAnswer makes the message with the answer of an exchange, the same that its
// Location has.
func (a *attempt) composeAnswer(ctx context.Context, x gateway.Exchange) error {
	got, ok, err := a.g.Runtime.Look(ctx, x)
	if err == nil && !ok {
		err = errors.New("the exchange has no answer yet")
	}
	if err == nil {
		a.m, err = answerTo(a.caller, x, got)
	}
	return err
}

// conversationOf is the conversation of a message of the realm, under which it goes on.
func conversationOf(x gateway.Exchange) string {
	var n note
	if json.Unmarshal(x.Note, &n) == nil && n.Conversation != nil {
		return *n.Conversation
	}
	return x.Conversation
}

// sentAt is when a message was written.
func sentAt(d swarm.Delivery) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, d.Wrapper.Timestamp); err == nil {
		return at
	}
	return d.Since
}

// contentTypeOf is the content type of an agent's text.
func contentTypeOf(body string) string {
	if strings.HasPrefix(strings.TrimSpace(body), "{") && json.Valid([]byte(body)) {
		return jsonContentType
	}
	return "text/plain"
}
