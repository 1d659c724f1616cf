package acp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Header fields beside the document's that the gateway reads (D-A10). Agents see all.
const (
	extraSubject  = "x_subject"
	extraPrefix   = "x_"
	extraTrace    = extraPrefix + "traceparent"
	extraState    = "x_tracestate"
	extraHops     = "x_hops"
	extraAck      = "x_ack"      // "requested": an ACKNOWLEDGE is sent where nothing else is
	extraProgress = "x_progress" // "inform": progress is sent as INFORM, which has "partial"
)

// partial is x_progress of an INFORM before the answer.
const partial = "partial"

// hop are the fields that change on the way: a repeat may have others.
var hop = []string{extraTrace, extraState, extraHops}

// accepted is a message that was taken.
type accepted struct {
	gateway.Exchange
	// owed means that the exchange gets an answer.
	owed bool
}

// accept hands a message to the runtime. async means that its sender does not wait for the
// answer: where the host reaches it, the answer is sent.
func (g *Gateway) accept(ctx context.Context, c gateway.Caller, in incoming, async bool) (a accepted, err error) {
	defer func() {
		event := gateway.Event{Caller: c, Foreign: string(in.Header.ID), Type: string(in.Header.Type), Text: in.text, Task: a.Task.Task}
		g.Runtime.Record(event.WithOutcome(a.Duplicate, err))
	}()
	if err := g.checkSender(c, string(in.Header.Sender)); err != nil {
		return a, err
	}
	if g.isRelayed(c, in.Header) {
		a.Duplicate, err = g.relay(ctx, c, in)
		return a, err
	}
	if in.Header.Type == message.MessageTypeAcknowledge {
		return a, nil // that is only recorded
	}
	if isPartial(in.Header) {
		return a, g.showPartial(ctx, c, in)
	}
	about, err := g.match(ctx, c, in.Header)
	if err != nil {
		return a, err
	}
	if about.repeat {
		a.Duplicate = true
		return a, nil
	}
	if about.flag != "" {
		if err := checkFlagged(c, in.Header, about.flag); err != nil {
			return a, err
		}
		in.flags = append(in.flags, about.flag)
	}
	kind := gateway.Tells
	if answer, _ := in.Header.Type.Expects(); answer != "" {
		kind, a.owed = gateway.Asks, true
	}
	switch {
	case about.answers != "":
		a.Exchange, err = g.answer(ctx, c, in, about, false)
	case about.of != nil: // the answer leaves with the task's other messages
		a.owed = false
		a.Exchange, err = g.follow(ctx, c, in, about, kind)
	default:
		a.Exchange, err = g.deliver(ctx, c, in, kind, async)
	}
	if errors.Is(err, gateway.ErrDenied) && canAnswer(in.Header.Type) && in.Header.ReplyTo == nil && !c.May.Has(gateway.MayTell) {
		text := fmt.Sprintf("reply_to is missing, so this answers nothing and would be told, and %s", c.Missing(Name, gateway.MayTell))
		err = &fault{code: codeForbidden, text: text, status: http.StatusForbidden}
	}
	return a, err
}

// deliver brings a message to the agent that it names.
func (g *Gateway) deliver(ctx context.Context, c gateway.Caller, in incoming, kind gateway.Kind, async bool) (gateway.Exchange, error) {
	agent, err := g.agentOf(c, string(in.Header.Receiver))
	if f := new(fault); errors.As(err, &f) {
		if in.Header.ReplyTo != nil && canAnswer(in.Header.Type) {
			return gateway.Exchange{}, unmatched(in.Header) // an answer goes to its asker, who may not be exposed
		}
		f.text += unrelated(in.Header)
	}
	if err != nil {
		return gateway.Exchange{}, err
	}
	a, err := askOf(in)
	if err != nil {
		return gateway.Exchange{}, err
	}
	a.Kind, a.Swarm, a.To = kind, agent.Swarm, []string{agent.Name}
	if a.From == c.Realm {
		a.From = "" // the realm itself, which needs no ids
	}
	_, partner := g.Runtime.Partner(c.Realm)
	a.Reply = partner && async && kind == gateway.Asks
	return g.Runtime.Ask(ctx, c, a)
}

// askOf returns a message as the runtime takes it, without its recipient.
func askOf(in incoming) (a gateway.Ask, err error) {
	h := in.Header
	a = gateway.Ask{
		ID: string(h.ID), From: string(h.Sender), Conversation: value(h.ConversationID), Subject: subjectOf(in.Message), Body: in.Body,
		Raw: in.text, Info: infoOf(in), Hops: gateway.ExtensionHops(h.Extra[extraHops]),
		Trace: swarm.ParseTrace(gateway.ExtensionText(h.Extra[extraTrace]), gateway.ExtensionText(h.Extra[extraState])),
	}
	if len(a.Body) > gateway.MaxText {
		a.Parts = []gateway.Part{{Name: "body", Type: h.ContentType, Data: []byte(a.Body)}}
		a.Body = ""
	}
	if a.Digest, err = digest(in.Message, in.text); err == nil {
		a.Note, err = noteOf(in.Message)
	}
	return a, err
}

// digest is what a repeat of a message must have too: all of its text but what changes on
// the way.
func digest(m message.Message, text []byte) (sum [32]byte, err error) {
	isHop := func(name string) bool { _, has := m.Header.Extra[name]; return has }
	if !slices.ContainsFunc(hop, isHop) {
		return sha256.Sum256(text), nil
	}
	m.Header.Extra = maps.Clone(m.Header.Extra)
	for _, name := range hop {
		delete(m.Header.Extra, name)
	}
	text, err = m.MarshalJSON()
	return sha256.Sum256(text), err
}

// subjectOf is what an agent sees first: x_subject, or the type with the action of the
// body, or with its begin.
func subjectOf(m message.Message) string {
	if subject := gateway.ExtensionText(m.Header.Extra[extraSubject]); subject != "" && !mail.Reserved(subject) {
		return subject
	}
	about := m.Body
	var body struct {
		Action string `json:"action"`
	}
	if isJSON(m.Header.ContentType) && json.Unmarshal([]byte(m.Body), &body) == nil {
		about = cmp.Or(body.Action, about)
	}
	return strings.TrimSuffix(string(m.Header.Type)+": "+gateway.Excerpt(about), ": ")
}

// infoOf is what agents see of a message besides its text.
func infoOf(in incoming) map[string]any {
	h := in.Header
	answer, _ := h.Type.Expects()
	info := map[string]any{
		"protocol": Name, "version": h.Version, "type": string(h.Type), "message_id": string(h.ID), "sender": string(h.Sender),
		"receiver": string(h.Receiver), "content_type": h.ContentType, "timestamp": string(h.Timestamp),
	}
	if answer != "" {
		info["expects"] = string(answer)
	}
	if h.ReplyTo != nil {
		info["reply_to"] = string(*h.ReplyTo)
	}
	if h.ConversationID != nil {
		info["conversation"] = *h.ConversationID
	}
	if len(h.Extra) > 0 {
		info["header"] = h.Extra
	}
	if len(in.flags) > 0 {
		info["flags"] = in.flags
	}
	return info
}

func value[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}
