package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/gateway/acp/check"
	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/gateway/acp/message"
	"skep/host/internal/gateway/wire"
	"skep/spec/mail"
)

// headerPath begins the paths of header fields in errors.
const headerPath = "Message.header"

// Limits of a message, in bytes. The codec of every language refuses a text of more than
// [MaxMessage], or more than maxDepth levels.
const (
	MaxMessage      = check.MaxMessage
	maxDepth        = 64
	maxAgentID      = 512
	maxMessageID    = 256
	maxConversation = 256
	maxContentType  = 128
	// maxHeader bounds what a message has beside its body: of each number there the codec
	// makes a value of some hundred bytes.
	maxHeader = 16 << 10
	// maxGlimpse bounds a field of an unusable message, as it is written.
	maxGlimpse = 4 << 10
)

// version is the version of the protocol that is written. All with its first number are
// read.
const version = "1.0"

var readVersions = regexp.MustCompile(`^1(\.[0-9]{1,9}){0,2}$`)

// Flags tell an agent what is unusual in a message that was taken.
const (
	flagBodyObject  = "body_object"      // the body was JSON, not a string with JSON
	flagBodyNoJSON  = "body_not_json"    // content_type says JSON, and the body is none
	flagDuplicate   = "duplicate_answer" // the question was answered before
	flagAmbiguous   = "ambiguous"        // several questions wait, and it names none
	jsonContentType = "application/json"
)

// reader reads messages.
type reader struct {
	strict bool
	depth  int
	// declared is the operator's message, nil for the one of ACP 1.0.
	declared *dsl.Type
	large    wire.LargeReads
}

// incoming is a message that was read.
type incoming struct {
	message.Message
	flags []string
	// text is the message in the form of the codec.
	text []byte
	// toMailbox is set for a relayed message that waits for no connection.
	toMailbox bool
}

// read returns a message, or the fault for its sender. The message of a fault has what
// could be read of the header.
func (r reader) read(text []byte) (incoming, error) {
	// The wait ends without the caller: the texts before this one are read in a bounded time.
	release, err := r.large.Acquire(context.Background(), len(text))
	if err != nil {
		return incoming{}, err
	}
	defer release()
	m, flags, err := r.decode(text)
	if err == nil {
		err = r.check(m)
	}
	if err != nil {
		return incoming{Message: r.glimpse(text)}, err
	}
	in := incoming{Message: m, flags: flags}
	if in.text, err = m.MarshalJSON(); err != nil {
		return in, malformed("%v", err)
	}
	if isJSON(m.Header.ContentType) && !json.Valid([]byte(m.Body)) {
		if r.strict {
			return in, malformed("Message.body: is no JSON, and content_type says so")
		}
		in.flags = append(in.flags, flagBodyNoJSON)
	}
	if r.declared != nil {
		if err := checkDeclared(r.declared, in.text, in.Header.Extra); err != nil {
			return in, malformed("%v", err)
		}
	}
	return in, nil
}

// decode reads a message by the codec; in the profile default also one that is rewritten
// to its form. The codec makes a value of each part of a text: it gets none before the rest
// of the message is weighed, and no body that is a list or an object.
func (r reader) decode(text []byte) (m message.Message, flags []string, err error) {
	if abi.Deeper(text, r.depth) {
		return m, nil, malformed("the text is nested deeper than %d; %s", r.depth, wire.Remedy(Name, "max_depth", int64(r.depth), maxDepth))
	}
	header, body := partsOf(text)
	if rest := len(text) - len(body); rest > maxHeader {
		return m, nil, malformed("Message: has %d bytes beside its body, more than %d", rest, maxHeader)
	}
	isTree := len(body) > 0 && (body[0] == '{' || body[0] == '[')
	if !isTree {
		err = r.unmarshal(&m, text)
		if name := camelName(m.Header); err == nil && name != "" {
			err = fmt.Errorf("%s.%s: is written %s", headerPath, name, camel[name])
		}
		if err == nil || r.strict {
			return m, nil, asMalformed(err)
		}
	}
	if err := check.Syntax(text); err != nil {
		return message.Message{}, nil, malformed("%v", err) // parts of it make a message
	}
	if !r.strict {
		if header, err = rewriteHeader(header); err != nil {
			return message.Message{}, nil, asMalformed(err)
		}
	}
	if !isTree {
		return m, nil, asMalformed(r.unmarshal(&m, withParts(text, header, body)))
	}
	if err = r.unmarshal(&m, withParts(text, header, []byte(`""`))); err != nil {
		return m, nil, asMalformed(err)
	}
	if r.strict || !isJSON(m.Header.ContentType) {
		return message.Message{}, nil, malformed("Message.body: is no string")
	}
	m.Body, err = compactBody(body)
	return m, []string{flagBodyObject}, err
}

// unmarshal reads a message by the codec. Its error has all that is wrong.
func (r reader) unmarshal(m *message.Message, text []byte) error {
	err := m.UnmarshalJSON(text)
	if err == nil {
		return nil
	}
	if why := check.Explain(r.form(), text); why != nil && strings.HasPrefix(why.Error(), err.Error()) {
		return why
	}
	return err
}

// partsOf returns the header and the body of a message as they are written, nil for none.
func partsOf(text []byte) (header, body []byte) {
	for name, value := range wire.EachMember(text) {
		switch string(name) {
		case `"header"`:
			header = value
		case `"body"`:
			body = value
		}
	}
	return header, body
}

// withParts returns a message with other parts. Its other members stay, for the codec.
func withParts(text, header, body []byte) []byte {
	out := make([]byte, 0, maxHeader+len(header)+len(body))
	before := byte('{')
	for name, value := range wire.EachMember(text) {
		switch string(name) {
		case `"header"`:
			value = header
		case `"body"`:
			value = body
		}
		out = append(append(append(append(out, before), name...), ':'), value...)
		before = ','
	}
	return append(out, '}')
}

// compactBody returns a body that is no string as one, without white space.
func compactBody(body []byte) (string, error) {
	if err := wire.CheckJSON(body, Name, maxDepth); err != nil {
		return "", malformed("Message.body: %v", err)
	}
	out := bytes.NewBuffer(make([]byte, 0, len(body)))
	err := json.Compact(out, body)
	return out.String(), err
}

// camel are the names of the Scala example for fields of the declarations (D-A1).
var camel = map[string]string{"contentType": "content_type", "replyTo": "reply_to", "conversationId": "conversation_id"}

// camelName is a name of camel in a header: the codec takes it for one that is not
// declared.
func camelName(h message.Header) string {
	for name := range camel {
		if _, has := h.Extra[name]; has {
			return name
		}
	}
	return ""
}

// wrapped are the fields whose values the Scala example has in a class of one member
// (D-A2).
var wrapped = map[string]string{"sender": "id", "receiver": "id", "id": "id", "reply_to": "id", "timestamp": "time"}

// members reads an object by the codec's own parser, so that nothing passes that the
// codec would refuse.
func members(text []byte) (map[string]json.RawMessage, error) {
	const name = "Message"
	places, err := check.Extra(&dsl.Type{Kind: dsl.Record, Name: name, Open: true}, text)
	all := make(map[string]json.RawMessage, len(places))
	for place, value := range places {
		all[strings.TrimPrefix(place, name+".")] = value
	}
	return all, err
}

// rewriteHeader returns a header in the codec's form: names with underscores, and texts
// without a wrapper.
func rewriteHeader(text []byte) ([]byte, error) {
	header, err := members(text)
	switch {
	case text == nil:
		return nil, fmt.Errorf("%s: is missing or no object", headerPath)
	case err != nil:
		return nil, check.Explain(&dsl.Type{Kind: dsl.Record, Name: headerPath, Open: true}, text)
	}
	for name, snake := range camel {
		value, has := header[name]
		if !has {
			continue
		}
		if other, both := header[snake]; both && !bytes.Equal(value, other) {
			return nil, fmt.Errorf("%s.%s: is another value than %s", headerPath, name, snake)
		}
		header[snake] = value
		delete(header, name)
	}
	for name, member := range wrapped {
		if inner, err := members(header[name]); err == nil && len(inner) == 1 && inner[member] != nil {
			header[name] = inner[member]
		}
	}
	return json.Marshal(header)
}

// isJSON reports whether a content_type is JSON's.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == jsonContentType || strings.HasSuffix(kind, "+json"))
}

// check refuses values that the declarations allow and nobody can use.
func (r reader) check(m message.Message) error {
	h := m.Header
	texts := []struct {
		name, value string
		most        int
	}{
		{"sender", string(h.Sender), maxAgentID}, {"receiver", string(h.Receiver), maxAgentID}, {"id", string(h.ID), maxMessageID},
		{"content_type", h.ContentType, maxContentType},
	}
	for _, t := range texts {
		if t.value == "" || len(t.value) > t.most || !mail.Printable(t.value) {
			return malformed("Message.header.%s: must have 1 to %d printable bytes", t.name, t.most)
		}
	}
	if h.ReplyTo != nil && len(*h.ReplyTo) > maxMessageID {
		return malformed("Message.header.reply_to: has more than %d bytes", maxMessageID)
	}
	if c := h.ConversationID; c != nil && (len(*c) > maxConversation || !mail.Printable(*c)) {
		return malformed("Message.header.conversation_id: must have at most %d printable bytes", maxConversation)
	}
	if !readVersions.MatchString(h.Version) {
		return &fault{code: codeVersion, text: fmt.Sprintf("version %.40q is not spoken here", h.Version), details: map[string]any{"supported": []string{version}}}
	}
	if !r.isTime(string(h.Timestamp)) {
		return malformed("Message.header.timestamp: is no time as in 2023-10-25T10:00:00Z")
	}
	if strings.ContainsRune(m.Body, 0) {
		return malformed("Message.body: has a NUL")
	}
	return nil
}

// timeLayouts are forms of ISO 8601 besides RFC 3339 (D-A9).
var timeLayouts = []string{"2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700"}

func (r reader) isTime(text string) bool {
	if _, err := time.Parse(time.RFC3339, text); err == nil || r.strict {
		return err == nil
	}
	return slices.ContainsFunc(timeLayouts, func(layout string) bool {
		_, err := time.Parse(layout, text)
		return err == nil
	})
}

// glimpse reads what an answer to an unusable message needs, as far as it is there: what the
// operator has declared, too.
func (r reader) glimpse(text []byte) (m message.Message) {
	if !json.Valid(text) {
		return m
	}
	found := map[string]json.RawMessage{
		"type": nil, "content_type": nil, "contentType": nil, "sender": nil, "receiver": nil, "id": nil, "conversation_id": nil, "conversationId": nil,
	}
	declared := fieldNames(r.ownFields())
	for _, name := range declared {
		found[name] = nil
	}
	header, _ := partsOf(text)
	for name, value := range wire.EachMember(header) {
		name = bytes.Trim(name, `"`)
		if _, is := found[string(name)]; is && len(value) <= maxGlimpse {
			found[string(name)] = value
		}
	}
	get := func(most int, names ...string) (value string) {
		for _, name := range names {
			raw := found[name]
			if inner, err := members(raw); err == nil && len(inner) == 1 {
				raw = slices.Collect(maps.Values(inner))[0]
			}
			if json.Unmarshal(raw, &value) == nil && value != "" && len(value) <= most && mail.Printable(value) {
				return value
			}
		}
		return ""
	}
	m.Header.Type = message.MessageType(get(maxMessageID, "type"))
	m.Header.ContentType = get(maxContentType, "content_type", "contentType")
	m.Header.Sender = message.AgentID(get(maxAgentID, "sender"))
	m.Header.Receiver = message.AgentID(get(maxAgentID, "receiver"))
	m.Header.ID = message.MessageID(get(maxMessageID, "id"))
	if c := get(maxConversation, "conversation_id", "conversationId"); c != "" {
		m.Header.ConversationID = &c
	}
	m.Header.Extra = map[string]json.RawMessage{}
	for _, name := range declared {
		if value := found[name]; value != nil {
			m.Header.Extra[name] = value
		}
	}
	return m
}
