package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
	h := readStart(start).Header
	m := message.Message{Header: message.Header{
		Version: "1.0", Sender: message.AgentID(cmp.Or(returned(h.Receiver), "skep")), Receiver: message.AgentID(cmp.Or(returned(h.Sender), "unknown")),
		Type: message.MessageTypeError, ID: message.MessageID(uuid.NewString()),
		Timestamp: message.Timestamp(time.Now().UTC().Format("2006-01-02T15:04:05.000Z")), ContentType: "application/json",
	}, Body: fmt.Sprintf(`{"code":%q,"message":%q,"retry":false}`, code, reason)}
	if id := message.MessageID(returned(h.ID)); id != "" {
		m.Header.ReplyTo = &id
	}
	if id := returned(h.Conversation); id != "" {
		m.Header.ConversationID = &id
	}
	return m
}

// returned is an id that an answer can have, or empty.
func returned(id acpText) string {
	if len(id) > maxReturned {
		return ""
	}
	return string(id)
}

// readStart reads the header of a message of which the rest may be missing.
func readStart(text []byte) (m acpEnvelope) {
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return m
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return m
		}
		if name == "header" {
			_ = d.Decode(&m.Header) // what could be read of it
			return m
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return m
		}
	}
	return m
}
