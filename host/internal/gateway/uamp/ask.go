package uamp

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// Members of ext that the gateway reads and writes. Agents see all.
const (
	extSubject      = "x-subject"
	extConversation = "x-conversation"
	extHops         = "x-hops"
	extTrace        = "traceparent"
	extState        = "tracestate"
	extMail         = "x-mail"
	extAnswer       = "x-answer-sha256"
)

// hashPrefix begins a hash in context.
const hashPrefix = "sha256:"

// note is what answering an envelope needs.
type note struct {
	Intent envelope.Intent `json:"intent"`
	From   string          `json:"from"`
	Stream string          `json:"stream,omitempty"`
	Window int             `json:"window"`
	// Agents are the names of the agents that were asked, if there are several.
	Agents []string `json:"agents,omitempty"`
	// Hash is what context of a later envelope may cite it with.
	Hash string `json:"hash"`
}

// noteOf is the note of an envelope to agents.
func noteOf(s envelope.Signed, agents []string) note {
	n := note{Intent: s.Intent, From: s.From, Stream: s.Stream, Window: s.Window}
	for sum := range s.Sums {
		n.Hash = hashPrefix + hex.EncodeToString(sum[:])
		break
	}
	if asks := s.Intent == envelope.Ask || s.Intent == envelope.Propose; asks && len(agents) > 1 {
		n.Agents = agents
	}
	return n
}

func readNote(x gateway.Exchange) (n note, err error) {
	if err := json.Unmarshal(x.Note, &n); err != nil {
		return n, fmt.Errorf("read the note of %q: %w", x.ID, err)
	}
	return n, nil
}

// askOf returns an envelope to agents as the runtime takes it, without its swarm.
func (g *Gateway) askOf(s envelope.Signed, agents []string) (a gateway.Ask, err error) {
	content, err := s.Body.Decode(int(g.MaxBody))
	if err != nil {
		return a, err
	}
	a = gateway.Ask{
		ID: string(s.ID), From: s.From, To: agents, Raw: s.Received(), Info: infoOf(s.Envelope), Hops: gateway.ExtensionHops(s.Ext[extHops]),
		Trace: swarm.ParseTrace(gateway.ExtensionText(s.Ext[extTrace]), gateway.ExtensionText(s.Ext[extState])),
	}
	if isText(s.Body.Type) && utf8.Valid(content) && len(content) <= gateway.MaxText && !strings.ContainsRune(string(content), 0) {
		a.Body = string(content)
	} else {
		a.Parts = []gateway.Part{{Name: "body", Type: s.Body.Type, Data: content}}
	}
	wire.Yield(len(a.Raw))
	a.Subject = subjectOf(s.Envelope, a.Body)
	a.Digest, err = s.Digest()
	wire.Yield(len(a.Raw))
	if err == nil {
		a.Note, err = json.Marshal(noteOf(s, agents))
	}
	return a, err
}

// isText reports whether a media type is one of text that agents read as it is.
func isText(mediaType string) bool {
	kind, _, err := mime.ParseMediaType(mediaType)
	return err == nil && (strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// subjectOf is what an agent sees first: x-subject of ext, or the begin of the text. What
// is neither asked nor told has its intent before it.
func subjectOf(e envelope.Envelope, body string) string {
	subject := gateway.ExtensionText(e.Ext[extSubject])
	if subject == "" || mail.Reserved(subject) {
		if e.Intent == envelope.Subscribe {
			if read, err := readSubscribe([]byte(body)); err == nil {
				body = read.Topic
			}
		}
		subject = strings.TrimLeft(gateway.Excerpt(body), ":")
	}
	if e.Intent == envelope.Propose || e.Intent == envelope.Subscribe {
		subject = strings.TrimSuffix(strings.ToUpper(string(e.Intent))+": "+subject, ": ")
	}
	return subject
}

// infoOf is what agents see of an envelope besides its content.
func infoOf(e envelope.Envelope) map[string]any {
	info := map[string]any{
		"protocol": Name, "version": "1.0", "type": string(e.Intent), "message_id": e.ID.String(), "sender": e.From, "receiver": e.To, "content_type": e.Body.Type,
	}
	switch e.Intent {
	case envelope.Ask, envelope.Subscribe:
		info["expects"] = string(envelope.Confirm)
	case envelope.Propose:
		info["expects"] = "confirm or deny"
	}
	if e.ReplyTo != "" {
		info["reply_to"] = e.ReplyTo.String()
	}
	if e.Stream != "" {
		info["stream_id"] = e.Stream
	}
	if len(e.Context) > 0 {
		var cited []map[string]string
		for _, r := range e.Context {
			cited = append(cited, map[string]string{"id": r.ID.String(), "hash": r.Hash})
		}
		info["context"] = cited
	}
	if len(e.Ext) > 0 {
		info["ext"] = e.Ext
	}
	return info
}
