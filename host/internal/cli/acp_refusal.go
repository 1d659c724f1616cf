package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/message"
)

// maxReturned bounds an id that is returned to its sender, in bytes.
const maxReturned = 256

// refuseLine answers a line that is too large for the host; start is the line, or how it
// begins.
func (b *acpBridge) refuseLine(start []byte, most int64) {
	reason := fmt.Sprintf("the line has more than %d bytes", most)
	if most < check.MaxMessage {
		reason += ", max_body of the host's [gateways.acp]"
	} else {
		reason += ", and no message of ACP has more"
	}
	b.answered(b.refuse(start, "malformed", reason))
}

// refuse answers a line with an ERROR, which it returns.
func (b *acpBridge) refuse(start []byte, code, reason string) acpEnvelope {
	text, err := errorAbout(start, code, reason).MarshalJSON()
	if err != nil {
		return acpEnvelope{}
	}
	b.out.write(text)
	return readEnvelope(text)
}

// errorAbout is an ERROR of this command about a line.
func errorAbout(start []byte, code, reason string) message.Message {
	raw := headerOf(start)
	var h acpEnvelope
	_ = json.Unmarshal(raw, &h.Header) // what could be read of it
	m := message.Message{Header: message.Header{
		Version: "1.0", Sender: message.AgentID(cmp.Or(returned(h.Header.Receiver), "skep")), Receiver: message.AgentID(cmp.Or(returned(h.Header.Sender), "unknown")),
		Type: message.MessageTypeError, ID: message.MessageID(uuid.NewString()),
		Timestamp: message.Timestamp(time.Now().UTC().Format("2006-01-02T15:04:05.000Z")), ContentType: "application/json",
		Extra: otherFields(raw),
	}, Body: fmt.Sprintf(`{"code":%q,"message":%q,"retry":false}`, code, reason)}
	if id := message.MessageID(returned(h.Header.ID)); id != "" {
		m.Header.ReplyTo = &id
	}
	if id := returned(h.Header.Conversation); id != "" {
		m.Header.ConversationID = &id
	}
	if !asksForJSON(raw) {
		m.Header.ContentType, m.Body = "text/plain", code+": "+reason
	}
	return m
}

// asksForJSON reports whether the content of a message with this header is JSON, or unknown.
func asksForJSON(header json.RawMessage) bool {
	var h struct {
		ContentType string `json:"content_type"`
	}
	_ = json.Unmarshal(header, &h)
	kind, _, err := mime.ParseMediaType(cmp.Or(h.ContentType, "application/json"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// notReturned are the header fields of the document and of the gateway: an ERROR has its own.
var notReturned = []string{
	"version", "sender", "receiver", "type", "id", "timestamp", "content_type", "contentType", "reply_to", "replyTo", "conversation_id", "conversationId",
	"x_subject", "x_traceparent", "x_tracestate", "x_hops", "x_ack", "x_progress",
}

// maxOthers bounds the other header fields that an ERROR returns, in bytes.
const maxOthers = 4096

// otherFields are the header fields that an ERROR about a message returns: the operator may have
// declared some that its reader demands. There are none where they are too long.
func otherFields(header json.RawMessage) (found map[string]json.RawMessage) {
	if json.Unmarshal(header, &found) != nil {
		return nil
	}
	size := 0
	for name, value := range found {
		size += len(name) + len(value)
		if slices.Contains(notReturned, name) {
			size -= len(name) + len(value)
			delete(found, name)
		}
	}
	if size > maxOthers {
		return nil
	}
	return found
}

// returned is an id that an answer can have, or empty.
func returned(id acpText) string {
	if len(id) > maxReturned {
		return ""
	}
	return string(id)
}

// headerOf returns the header of a message of which the rest may be missing, nil for none.
func headerOf(text []byte) (header json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		if name == "header" {
			return value
		}
	}
	return nil
}
