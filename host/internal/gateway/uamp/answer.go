package uamp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// answer is what a foreign agent answers.
type answer struct {
	// kind is the intent of an envelope, or the type of a stream's last delta; from is who
	// answers.
	kind, from string
	// code is set for what is a failure or a no.
	code    string
	subject string
	body    string
	parts   []gateway.Part
	// ext is what the envelope has besides; raw is the envelope.
	ext map[string]json.RawMessage
	raw []byte
	// sum is the hash of what the last delta of a stream had.
	sum string
}

func (a answer) failed() bool { return a.code != "" }

// answerIn is the answer in an envelope.
func (g *Gateway) answerIn(s envelope.Signed) answer {
	got := answer{kind: string(s.Intent), from: s.From, ext: s.Ext, raw: s.Received()}
	if subject := gateway.ExtensionText(s.Ext[extSubject]); !mail.Reserved(subject) {
		got.subject = subject
	}
	content, err := s.Body.Decode(int(g.MaxBody))
	switch {
	case s.Intent == envelope.Error:
		f := faultIn(s)
		got.code, got.body = string(f.Code), f.Text
	case err != nil:
		got.code, got.body = string(envelope.Unsupported), "The content of the answer cannot be read: "+err.Error()
	default:
		got.put(s.Body.Type, content)
	}
	if s.Intent == envelope.Deny {
		got.code = "DENIED"
	}
	return got
}

// put puts a content into the answer, as text if it is.
func (a *answer) put(mediaType string, content []byte) {
	if isText(mediaType) && utf8.Valid(content) && !strings.ContainsRune(string(content), 0) {
		a.body = string(content)
	} else if len(content) > 0 {
		a.parts = append(a.parts, gateway.Part{Name: "answer", Type: mediaType, Data: content})
	}
}

// done puts what a stream has brought into the answer: what its last delta answers, or else
// its chunks and the document that its patches make, nil for none (U-067).
func (a *answer) done(payload json.RawMessage, texts string, document json.RawMessage, binary []byte) {
	var known struct {
		Answer json.RawMessage `json:"answer"`
		MIME   string          `json:"mime"`
	}
	_ = json.Unmarshal(payload, &known) // another form is shown as it is
	var text string
	switch {
	case known.Answer != nil && json.Unmarshal(known.Answer, &text) == nil && known.Answer[0] == '"':
		a.put("text/plain", []byte(text))
	case known.Answer != nil:
		a.put("application/json", known.Answer)
	case texts != "":
		a.put("text/plain", []byte(texts))
		if document != nil {
			a.parts = append(a.parts, gateway.Part{Name: "document", Type: "application/json", Data: document})
		}
	case document != nil:
		a.put("application/json", document)
	case len(binary) == 0 && payload != nil:
		a.put("application/json", payload)
	}
	if len(binary) > 0 {
		kind := cmp.Or(known.MIME, "application/octet-stream")
		if a.body == "" && isText(kind) {
			a.put(kind, binary)
		} else {
			a.parts = append(a.parts, gateway.Part{Name: "answer", Type: kind, Data: binary})
		}
	}
}

// answerKey begins the runtime's id of an answer, as no id of an envelope does.
const answerKey = "answer:"

// deliverAnswer brings an answer to the agent whose envelope it answers, once. d is the
// outbox message where it is at hand: the answer came as the reply to a request of ours.
func (g *Gateway) deliverAnswer(ctx context.Context, c gateway.Caller, of openEnvelope, d *swarm.Delivery, got answer) error {
	a := gateway.Ask{
		Kind: gateway.Answers, ID: answerKey + string(of.ID), Swarm: of.Sent.Swarm, Of: cmp.Or(d, of.Sent.Delivery()), Sent: d == nil,
		Subject: got.subject, Body: got.body, Parts: got.parts, Raw: got.raw,
		Info: map[string]any{"protocol": Name, "version": "1.0", "type": got.kind, "sender": got.from, "reply_to": of.ID.String()},
	}
	if d != nil {
		a.Trace, a.Hops = d.Trace, d.Hops
	}
	if len(got.ext) > 0 {
		a.Info["ext"] = got.ext
	}
	if got.failed() {
		a.Subject, a.Body = "["+shownCode(got.code)+"]", cmp.Or(a.Body, "The agent gives no reason.")
		a.Info["error"] = got.code
	}
	limitBody(&a, "answer.txt")
	a.Digest = sha256.Sum256([]byte(a.Subject + "\n" + a.Body))
	_, err := g.Runtime.Ask(ctx, c, a)
	if errors.Is(err, gateway.ErrConflict) || errors.Is(err, gateway.ErrUnknown) {
		return nil // an attempt before has brought it, or our task does not wait any more
	}
	return err
}

// limitBody makes a body that no message can have a part.
func limitBody(a *gateway.Ask, name string) {
	if len(a.Body) > gateway.MaxText || strings.ContainsRune(a.Body, 0) {
		a.Parts = append(a.Parts, gateway.Part{Name: name, Type: "text/plain", Data: []byte(a.Body)})
		a.Body = ""
	}
}

// maxCode bounds a foreign code in a subject, in bytes.
const maxCode = 40

// shownCode is a code as a subject has it.
func shownCode(code string) string {
	if len(code) > maxCode || strings.ContainsAny(code, " []\n") {
		return "ERROR"
	}
	return strings.ToUpper(code)
}
