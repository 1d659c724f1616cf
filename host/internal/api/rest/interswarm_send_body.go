package rest

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// outboundPost is the parsed body of POST /interswarm/message.
type outboundPost struct {
	swarm.Post
	// stream asks for the task's log beside the answer.
	stream bool
	// requestID is the id in the answer. wrapped is set when the caller sent a
	// wrapper; the answer is then the message alone.
	requestID string
	wrapped   bool
}

// digest distinguishes messages under the same idempotency key.
func (m *outboundPost) digest() []byte {
	// A struct of strings always encodes.
	raw, _ := json.Marshal(struct {
		Body, Subject, Type, Task string
		To                        []string
	}{m.Body, m.Subject, string(m.Type), m.Task, m.To})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// readOutbound reads the body of POST /interswarm/message in all its forms.
func readOutbound(o *object, body []byte, depth int) (*outboundPost, error) {
	_, payload := o.get("payload")
	if _, id := o.get("message_id"); id && payload {
		o.members = nil // the wrapper's own parser reads them
		return parseWrapped(body, depth)
	}
	m := &outboundPost{requestID: uuid.NewString()}
	token := ""
	err := o.readTexts(textField{"user_token", &token}, textField{"message", &m.Body}, textField{"body", &m.Body},
		textField{"subject", &m.Subject}, textField{"task_id", &m.Task})
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, unauthorized("user token is required: the member 'user_token' must not be empty")
	}
	if m.Subject == "" {
		m.Subject = "Interswarm Message"
	}
	if m.To, err = outboundTargets(o); err != nil {
		return nil, err
	}
	return m, m.readOptions(o)
}

func outboundTargets(o *object) (targets []string, err error) {
	if raw, ok := o.get("targets"); ok {
		if json.Unmarshal(raw, &targets) != nil {
			return nil, badRequest("targets must be a list of strings")
		}
	}
	one, err := o.str("target_agent")
	if len(targets) == 0 && one != "" {
		targets = []string{one}
	}
	return targets, err
}

// readOptions reads how the message is sent, and validates the whole.
func (m *outboundPost) readOptions(o *object) error {
	if _, err := o.object("routing_info"); err != nil {
		return err
	}
	if _, err := o.boolean("ignore_stream_pings"); err != nil {
		return err
	}
	kind, err := o.str("msg_type")
	if err != nil {
		return err
	}
	if m.stream, err = o.boolean("stream"); err != nil {
		return err
	}
	return m.validate(kind)
}

func (m *outboundPost) validate(kind string) error {
	if len(m.To) == 0 || m.Body == "" {
		return badRequest("'targets' and 'body' are required")
	}
	switch m.Type = mail.Type(kind); m.Type {
	case "":
		m.Type = mail.Request
	case mail.Request, mail.Broadcast:
	default:
		return badRequest("msg_type '%s' is not supported for interswarm send", kind)
	}
	if m.Type == mail.Request && len(m.To) != 1 {
		return badRequest("'request' messages require exactly one target")
	}
	return nil
}

// parseWrapped reads a body that is a wrapper. Its sender is ignored: it is the
// caller's message.
func parseWrapped(body []byte, depth int) (*outboundPost, error) {
	w, err := readInterswarm(body, depth)
	if err != nil {
		return nil, badRequest("error parsing request: %v", err)
	}
	if w.AuthToken == "" {
		return nil, unauthorized("user token is required: the member 'auth_token' must not be empty")
	}
	p := w.Payload
	m := &outboundPost{wrapped: true, requestID: p.ID, Post: swarm.Post{Task: p.TaskID, Subject: p.Subject, Body: p.Body}}
	for _, r := range p.Recipients {
		target := r.Name
		if !strings.Contains(target, "@") && w.TargetSwarm != "" {
			target = mail.FormatAddr(target, w.TargetSwarm)
		}
		m.To = append(m.To, target)
	}
	return m, m.validate(string(w.Type))
}
