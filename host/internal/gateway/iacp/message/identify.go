package message

import "skep/host/internal/gateway/wire"

// maxNamed bounds the members that identify reads, in bytes.
const maxNamed = 4 << 10

// identify returns what a refusal needs of a message that cannot be read: its id, type and
// conversation, what it answers, who sent it and to whom. What is damaged, or has no form of such a member, is left
// out.
func identify(text []byte) (m Message) {
	for name, value := range wire.EachMember(text) {
		if len(value) > maxNamed {
			continue
		}
		switch string(name) {
		case `"message_id"`:
			m.ID = readText(value, isText)
		case `"message_type"`:
			m.Type = Type(readText(value, isText))
		case `"conversation_id"`:
			m.Conversation = readText(value, isText)
		case `"parent_message_id"`:
			m.Parent = readText(value, isText)
		case `"sender"`:
			m.Sender.ID = readAgent(value)
		case `"recipient"`:
			m.Recipient = &Recipient{ID: readAgent(value)}
		}
	}
	return m
}

// readAgent returns the agent_id of an agent, empty for none.
func readAgent(object []byte) (id string) {
	for name, value := range wire.EachMember(object) {
		if string(name) == `"agent_id"` {
			id = readText(value, IsAgent)
		}
	}
	return id
}

// readText returns a text of JSON that has a form, empty for another.
func readText(value []byte, hasForm func(string) bool) string {
	if text, ok := wire.Text(value); ok && hasForm(text) {
		return text
	}
	return ""
}
