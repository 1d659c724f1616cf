package mail

import (
	"encoding/json"
	"strings"
)

// AppendJSON appends m's JSON form to dst and returns the longer slice; on error
// dst as it was. It writes what the message schema takes or nothing, and
// never a null of its own, on one line. Reading the result back gives a
// Message equal to m, if m's raw JSON is compact and its empty lists are nil.
func (m Message) AppendJSON(dst []byte) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return dst, err
	}
	dst = appendMember(dst, `{"id":`, m.ID)
	dst = appendMember(dst, `,"timestamp":`, m.Timestamp)
	dst = appendMember(dst, `,"msg_type":`, string(m.Type))
	dst = append(dst, `,"message":`...)
	dst = m.Payload.append(dst, kindOf(m.Type))
	return append(dst, '}'), nil
}

// AppendJSON appends w's JSON form to dst; see [Message.AppendJSON].
func (w Interswarm) AppendJSON(dst []byte) ([]byte, error) {
	if err := w.Validate(); err != nil {
		return dst, err
	}
	dst = appendMember(dst, `{"message_id":`, w.MessageID)
	dst = appendMember(dst, `,"source_swarm":`, w.SourceSwarm)
	dst = appendMember(dst, `,"target_swarm":`, w.TargetSwarm)
	dst = appendMember(dst, `,"timestamp":`, w.Timestamp)
	dst = appendMember(dst, `,"msg_type":`, string(w.Type))
	dst = appendMember(dst, `,"task_owner":`, w.TaskOwner)
	dst = appendTexts(append(dst, `,"task_contributors":`...), w.TaskContributors)
	dst = w.Payload.append(append(dst, `,"payload":`...), kindOf(w.Type))
	dst = appendMember(dst, `,"auth_token":`, w.AuthToken)
	dst = append(dst, `,"metadata":`...)
	if len(w.Metadata) == 0 {
		dst = append(dst, "{}"...)
	} else {
		dst = appendCompact(dst, w.Metadata)
	}
	return append(dst, '}'), nil
}

// MarshalJSON is [Message.AppendJSON] for encoding/json, which may spell some
// characters as escapes.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// UnmarshalJSON is [ParseMessage] for encoding/json.
func (m *Message) UnmarshalJSON(raw []byte) (err error) {
	*m, err = ParseMessage(raw)
	return err
}

// MarshalJSON is [Interswarm.AppendJSON] for encoding/json, which may spell some
// characters as escapes.
func (w Interswarm) MarshalJSON() ([]byte, error) { return w.AppendJSON(nil) }

// UnmarshalJSON is [ParseInterswarm] for encoding/json.
func (w *Interswarm) UnmarshalJSON(raw []byte) (err error) {
	*w, err = ParseInterswarm(raw)
	return err
}

func (p *Payload) append(dst []byte, k *kind) []byte {
	dst = appendMember(dst, `{"task_id":`, p.TaskID)
	dst = AppendText(appendKey(dst, k.keys[fieldID]), p.ID)
	dst = p.Sender.append(append(dst, `,"sender":`...))
	dst = appendKey(dst, k.keys[fieldRecipients])
	if k.many {
		dst = appendAddresses(dst, p.Recipients)
	} else {
		dst = p.Recipients[0].append(dst)
	}
	dst = appendMember(dst, `,"subject":`, p.Subject)
	dst = appendMember(dst, `,"body":`, p.Body)
	if p.SenderSwarm != "" {
		dst = appendMember(dst, `,"sender_swarm":`, p.SenderSwarm)
	}
	switch {
	case len(p.RecipientSwarms) == 0:
	case k.many:
		dst = appendTexts(append(dst, `,"recipient_swarms":`...), p.RecipientSwarms)
	case p.RecipientSwarms[0] != "":
		dst = appendMember(dst, `,"recipient_swarm":`, p.RecipientSwarms[0])
	}
	if len(p.RoutingInfo) > 0 {
		dst = appendCompact(append(dst, `,"routing_info":`...), p.RoutingInfo)
	}
	return append(dst, '}')
}

func (a Address) append(dst []byte) []byte {
	dst = appendMember(dst, `{"address_type":`, string(a.Type))
	dst = appendMember(dst, `,"address":`, a.Name)
	return append(dst, '}')
}

func appendAddresses(dst []byte, list []Address) []byte {
	dst = append(dst, '[')
	for i, a := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.append(dst)
	}
	return append(dst, ']')
}

func appendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(dst, s)
	}
	return append(dst, ']')
}

// appendMember appends a key, given with its punctuation, and a text.
func appendMember(dst []byte, key, value string) []byte {
	return AppendText(append(dst, key...), value)
}

func appendKey(dst []byte, key string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, key...)
	return append(dst, `":`...)
}

// AppendText appends valid UTF-8 to dst as a JSON string and returns the longer slice.
func AppendText(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		if short := strings.IndexByte(shortEscapes, c); short >= 0 {
			dst = append(dst, '\\', shortEscapes[short+1])
		} else {
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// shortEscapes pairs the bytes that have a short escape with its letter. No
// letter is a byte that needs escaping, but '"' and '\' are their own letters.
const shortEscapes = "\"\"\\\\\nn\rr\tt\bb\ff"

var (
	_ json.Marshaler   = Message{}
	_ json.Unmarshaler = (*Message)(nil)
	_ json.Marshaler   = Interswarm{}
	_ json.Unmarshaler = (*Interswarm)(nil)
)
