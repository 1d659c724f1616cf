package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// match is what a message of a realm has to do with messages of ours.
type match struct {
	// of is the message of ours that it answers or follows, nil for none.
	of  *gateway.OutboxRef
	key state.Key
	// d is the outbox message of the question where it is at hand.
	d *swarm.Delivery
	// answers is the id of the question that it answers, empty for none.
	answers string
	flag    string
	// repeat means that it has answered a question before.
	repeat bool
	// loose is set for what is told and could be taken for the answer to a later question,
	// as it names none.
	loose bool
}

// notOurs is why a reply_to is refused (G-024). Threads are looked for among the sender's
// own, and the text is one: a question to another partner is as unknown as any.
const notOurs = "no question with this id was sent to you, or it waits for no answer any more: its time is over, " +
	"it was answered long ago, or its conversation was silent for 30 days and is forgotten"

// unmatched refuses an answer whose question is unknown or waits no more.
func unmatched(h message.Header) error {
	return &fault{code: codeReceiver, text: fmt.Sprintf("reply_to %q: %s", value(h.ReplyTo), notOurs), status: http.StatusNotFound}
}

// unrelated is what is wrong with a message that answers nothing and names no receiver,
// besides its receiver.
func unrelated(h message.Header) string {
	if !canAnswer(h.Type) || h.ConversationID == nil {
		return ""
	}
	return fmt.Sprintf("; and without reply_to it answers nothing: in conversation_id %q you were asked nothing", *h.ConversationID)
}

// canAnswer reports whether a message of this type may be an answer.
func canAnswer(t message.MessageType) bool {
	return t == message.MessageTypeResponse || t == message.MessageTypeInform || t == message.MessageTypeError
}

// misdirected refuses an answer to another agent than the one that has asked.
func misdirected(h message.Header, question, asker string) error {
	return &fault{code: codeReceiver, text: fmt.Sprintf("receiver %q: %q was asked by %q", h.Receiver, question, asker), status: http.StatusNotFound}
}

// isFor reports whether the receiver of a message is the agent that has sent ours, in any
// of the forms of a receiver.
func (g *Gateway) isFor(h message.Header, sent gateway.OutboxRef) bool {
	asker, home, _ := mail.ParseAddr(sent.From)
	name, swarm, ok := g.parseReceiver(string(h.Receiver))
	return ok && name == asker && (swarm == "" || swarm == cmp.Or(home, sent.Swarm))
}

// match finds what a message is about (D-A4, D-A5): what its reply_to names, or without
// one the conversation's only question.
func (g *Gateway) match(ctx context.Context, c gateway.Caller, h message.Header) (m match, err error) {
	isAnswer := canAnswer(h.Type)
	name, id, named := splitID(value(h.ReplyTo))
	switch {
	case named:
	case h.ReplyTo != nil && (h.Type == message.MessageTypeResponse || h.Type == message.MessageTypeError):
		return m, unmatched(h)
	case h.ConversationID == nil:
		return m, nil
	default:
		name = threadName(*h.ConversationID, string(h.Sender))
	}
	m.key = threadKey(c.Principal.Tenant, c.Realm, name)
	t, version, err := state.Load[thread](ctx, g.records, m.key)
	if err == nil && version == 0 && named && isAnswer {
		err = unmatched(h)
	}
	if err != nil || version == 0 {
		return m, err
	}
	if isAnswer && t.hasAnswer(string(h.ID)) {
		return match{repeat: true}, nil
	}
	if m.of = &t.Last; t.Theirs && !named {
		m.of = nil
	}
	i := t.find(id)
	if i >= 0 {
		m.of = &t.Open[i].Sent // whatever was sent since
	}
	if !isAnswer {
		return m, nil
	}
	m.loose = !named && h.Type != message.MessageTypeError && h.ReplyTo == nil
	if m.loose && !t.isTold(string(h.ID)) {
		switch _, err := g.Runtime.Find(ctx, c, string(h.ID)); {
		case err == nil: // told before our first question there
			return match{repeat: true}, nil
		case !errors.Is(err, gateway.ErrUnknown):
			return match{}, err
		case len(t.Open) == 1 && (!t.Theirs || g.isFor(h, t.Open[0].Sent)):
			i = 0
		case len(t.Open) > 1:
			m.flag = flagAmbiguous
		}
	}
	switch {
	case i >= 0 && !g.isFor(h, t.Open[i].Sent):
		return match{}, misdirected(h, messageID(name, t.Open[i].ID), t.Open[i].Sent.From)
	case i >= 0:
		m.of, m.answers = &t.Open[i].Sent, t.Open[i].ID
	case named && t.isAnswered(id):
		m.flag = flagDuplicate
	case named:
		return match{}, unmatched(h)
	}
	return m, nil
}

// checkFlagged refuses what could have been an answer where its sender may only answer: the
// reason is why it would be told.
func checkFlagged(c gateway.Caller, h message.Header, flag string) error {
	if c.May.Has(gateway.MayTell) {
		return nil
	}
	why := fmt.Sprintf("reply_to is missing, and several questions in conversation_id %q wait", value(h.ConversationID))
	if flag == flagDuplicate {
		why = fmt.Sprintf("reply_to %q: the question has its answer already", value(h.ReplyTo))
	}
	text := fmt.Sprintf("%s, so this would be told (%s), and %s", why, flag, c.Missing(Name, gateway.MayTell))
	return &fault{code: codeForbidden, text: text, status: http.StatusForbidden}
}

// answerKey begins the runtime's id of an answer. No message has such an id: they are
// printable.
const answerKey = "answer\x1e"

// answer brings the answer to a question of ours to the agent that asked, once. A
// fetched one came as the reply to our request.
func (g *Gateway) answer(ctx context.Context, c gateway.Caller, in incoming, m match, fetched bool) (gateway.Exchange, error) {
	a, err := askOf(in)
	if err != nil {
		return gateway.Exchange{}, err
	}
	a.Kind, a.ID, a.From, a.Swarm, a.Of, a.Sent = gateway.Answers, answerKey+m.answers, "", m.of.Swarm, cmp.Or(m.d, m.of.Delivery()), !fetched
	if in.Header.Type == message.MessageTypeError {
		code := errorCode(in.Body)
		a.Subject = "[" + code + "]"
		a.Info["error"] = code
	}
	x, err := g.Runtime.Ask(ctx, c, a)
	isGone := errors.Is(err, gateway.ErrUnknown)                       // our task was erased, or its time in the store is over
	if err != nil && !isGone && !errors.Is(err, gateway.ErrConflict) { // which means that an attempt before has brought it
		return x, err
	}
	by := string(in.Header.ID)
	if isGone {
		by = ""
	}
	if err := g.changeThread(ctx, m.key, func(t *thread) error {
		t.close(m.answers, by)
		return nil
	}); err != nil {
		return x, err
	}
	g.waiting.wake(m.key, m.answers)
	if isGone && !fetched {
		return x, &fault{code: codeReceiver, text: "the question waits for no answer: its task is gone", status: http.StatusNotFound}
	}
	return x, nil
}

// errorCode is the code in the body of an ERROR of any form.
func errorCode(body string) string {
	var found struct {
		Code string `json:"code"`
	}
	code, _, hasCode := strings.Cut(body, ":")
	if json.Unmarshal([]byte(body), &found) == nil && found.Code != "" {
		code, hasCode = found.Code, true
	}
	if !hasCode || code == "" || len(code) > 40 || strings.ContainsAny(code, " []\n") {
		return "ERROR"
	}
	return strings.ToUpper(code)
}

// follow brings a message about a task of ours to it: what is told, and questions of the
// foreign agent. Its id at the runtime is a UUID. What could be taken for an answer when it
// is repeated is remembered first.
func (g *Gateway) follow(ctx context.Context, c gateway.Caller, in incoming, m match, kind gateway.Kind) (gateway.Exchange, error) {
	a, err := askOf(in)
	if err != nil {
		return gateway.Exchange{}, err
	}
	if id := string(in.Header.ID); m.loose && c.May.Has(gateway.MayTell) {
		err := g.changeThread(ctx, m.key, func(t *thread) error {
			t.tell(id)
			return nil
		})
		if err != nil {
			return gateway.Exchange{}, err
		}
	}
	a.Reply = true
	a.Kind, a.Swarm, a.Of, a.Sent = kind, m.of.Swarm, m.of.Delivery(), true
	a.ID = uuid.NewSHA1(uuid.NameSpaceURL, []byte(ownID("follow", c, string(in.Header.ID)))).String()
	return g.Runtime.Ask(ctx, c, a)
}
