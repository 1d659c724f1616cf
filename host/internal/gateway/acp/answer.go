package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
)

// note is what answering a message needs.
type note struct {
	ID           message.MessageID          `json:"id"`
	Type         message.MessageType        `json:"type"`
	Sender       message.AgentID            `json:"sender"`
	Receiver     message.AgentID            `json:"receiver"`
	ContentType  string                     `json:"content_type"`
	Conversation *string                    `json:"conversation,omitempty"`
	Extra        map[string]json.RawMessage `json:"extra,omitempty"`
}

// own are the additional fields that the gateway itself reads: an answer has none of them.
var own = []string{extraSubject, extraTrace, extraState, extraHops, extraAck, extraProgress}

// noteOf keeps what an answer returns to its asker. A question with more
// additional fields than there is place for is refused: none is lost without a word.
func noteOf(m message.Message) ([]byte, error) {
	h := m.Header
	n := note{ID: h.ID, Type: h.Type, Sender: h.Sender, Receiver: h.Receiver, ContentType: h.ContentType, Conversation: h.ConversationID}
	for name, value := range h.Extra {
		if slices.Contains(own, name) {
			continue
		}
		if n.Extra == nil {
			n.Extra = map[string]json.RawMessage{}
		}
		n.Extra[name] = value
	}
	raw, err := json.Marshal(n)
	if err == nil && len(raw) > gateway.MaxNote {
		if answer, _ := n.Type.Expects(); answer != "" {
			return nil, malformed("the header's additional fields are too long: a %s returns them, and what it returns has %d bytes of %d", answer, len(raw), gateway.MaxNote)
		}
		n.Extra = nil // nothing returns them
		raw, err = json.Marshal(n)
	}
	return raw, err
}

// answerTo returns the message with an answer. It is the same for each reader of the
// exchange.
func answerTo(c gateway.Caller, x gateway.Exchange, a gateway.Answer) (message.Message, error) {
	var n note
	if err := json.Unmarshal(x.Note, &n); err != nil {
		return message.Message{}, fmt.Errorf("read the note of %q: %w", x.ID, err)
	}
	m := n.message(ownID("answer", c, x.ID), a.At)
	m.Header.Type, _ = n.Type.Expects()
	if code, failed := failures[a.Outcome]; failed {
		setFault(&m, &fault{code: code, text: a.Body})
	} else {
		m.Header.ContentType, m.Body = contentOf(n.ContentType, a.Body)
	}
	if _, err := m.MarshalJSON(); err != nil { // too long, or not UTF-8
		setFault(&m, &fault{code: codeInternal, text: "the answer cannot be written as a message of ACP"})
	}
	return m, nil
}

// failures are the codes of what is no answer.
var failures = map[gateway.Outcome]string{
	gateway.Failed: codeInternal, gateway.TimedOut: codeTimeout, gateway.Cancelled: codeInternal,
}

// message is a message to who sent the noted one, without type and body.
func (n note) message(id string, at time.Time) message.Message {
	return message.Message{Header: message.Header{
		Version: version, Sender: n.Receiver, Receiver: n.Sender, ID: message.MessageID(id), Timestamp: timestamp(at),
		ContentType: n.ContentType, ReplyTo: &n.ID, ConversationID: n.Conversation, Extra: n.Extra,
	}}
}

// wantsAcknowledge reports whether a message asks for an ACKNOWLEDGE, which it gets if it
// gets no other answer.
func wantsAcknowledge(h message.Header) bool {
	return gateway.ExtensionText(h.Extra[extraAck]) == "requested" && h.Type != message.MessageTypeAcknowledge && h.Type != message.MessageTypeError
}

// acknowledgeOf returns the ACKNOWLEDGE of a message.
func (g *Gateway) acknowledgeOf(c gateway.Caller, h message.Header) message.Message {
	about := note{ID: h.ID, Sender: h.Sender, Receiver: h.Receiver, ContentType: "text/plain", Conversation: h.ConversationID}
	m := about.message(ownID("acknowledge", c, string(h.ID)), time.Now())
	m.Header.Type = message.MessageTypeAcknowledge
	g.addDeclared(&m, c, h)
	return m
}

// timestamp writes a time as UTC with milliseconds (D-A9).
func timestamp(at time.Time) message.Timestamp {
	return message.Timestamp(at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// ownID is an id of ours about a message of a caller, the same each time.
func ownID(what string, c gateway.Caller, id string) string {
	key := strings.Join([]string{Name, what, c.Principal.Tenant, c.Realm, id}, "\x1f")
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(key)).String()
}

// contentOf returns an agent's text in the form that was asked for. Text in answer to JSON
// is the result of an object like the document's.
func contentOf(asked, text string) (contentType, body string) {
	kind, _, _ := strings.Cut(asked, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case isJSON(asked) && json.Valid([]byte(text)):
		return asked, text
	case isJSON(asked):
		return asked, string(wire.MustEncode(struct {
			Status string `json:"status"`
			Result string `json:"result"`
		}{"success", text}))
	case strings.HasPrefix(kind, "text/") && kind != "text/xml", strings.HasSuffix(kind, "xml") && strings.HasPrefix(strings.TrimSpace(text), "<"):
		return asked, text
	}
	return "text/plain", text
}

// errorBody is the body of an ERROR (D-A11).
type errorBody struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Retry   bool           `json:"retry"`
	Details map[string]any `json:"details,omitempty"`
}

// setFault makes a message an ERROR: its body is JSON where the content is, or unknown, and
// else text.
func setFault(m *message.Message, f *fault) {
	h := &m.Header
	h.Type = message.MessageTypeError
	if h.ContentType == "" || isJSON(h.ContentType) {
		h.ContentType, m.Body = jsonContentType, string(wire.MustEncode(errorBody{f.code, f.text, f.retry, f.details}))
	} else {
		h.ContentType, m.Body = "text/plain", f.code+": "+f.text
	}
}

// refusal is the ERROR for a message that was not taken, whose header may be missing in
// part.
func (g *Gateway) refusal(c gateway.Caller, h message.Header, f *fault) message.Message {
	m := message.Message{Header: message.Header{
		Version: version, Sender: cmp.Or(h.Receiver, "skep"), Receiver: cmp.Or(h.Sender, message.AgentID(c.Realm), "unknown"),
		ID: message.MessageID(uuid.NewString()), Timestamp: timestamp(time.Now()), ContentType: h.ContentType, ConversationID: h.ConversationID,
	}}
	if h.ID != "" {
		m.Header.ReplyTo = &h.ID
	}
	setFault(&m, f)
	g.addDeclared(&m, c, h)
	return m
}

// isRefusedAloud reports whether an ERROR is sent for a message that was not taken: what
// answers or only tells gets none, unless it was unusable or asks for an ACKNOWLEDGE (G-031,
//
func isRefusedAloud(h message.Header, f *fault) bool {
	answer, _ := h.Type.Expects()
	switch {
	case h.Type == message.MessageTypeError, h.Type == message.MessageTypeAcknowledge:
		return false
	case answer != "", wantsAcknowledge(h):
		return true
	}
	return f.code == codeMalformed || f.code == codeVersion
}
