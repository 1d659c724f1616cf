package rest

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// outbound is the body of POST /interswarm/message, understood.
type outbound struct {
	swarm.Post
	// stream asks for the task's log beside the answer.
	stream bool
	// request is the id that the answer bears; bare means that the caller sent
	// a wrapper, and is answered with the message alone.
	request string
	bare    bool
}

// digest tells one message from another under the same idempotency key.
func (m *outbound) digest() []byte {
	// A struct of strings always encodes.
	raw, _ := json.Marshal(struct {
		Body, Subject, Type, Task string
		To                        []string
	}{m.Body, m.Subject, string(m.Type), m.Task, m.To})
	sum := sha256.Sum256(raw)
	return sum[:]
}

// parseOutbound reads the body of POST /interswarm/message, in all the forms in
// which it is sent.
func parseOutbound(body []byte, depth int) (*outbound, error) {
	o, err := parseObject(body, depth)
	if err != nil {
		return nil, err
	}
	_, payload := o.get("payload")
	if _, id := o.get("message_id"); id && payload {
		return parseBare(body, depth)
	}
	m := &outbound{request: uuid.NewString()}
	token := ""
	err = o.texts(goesTo{"user_token", &token}, goesTo{"message", &m.Body}, goesTo{"body", &m.Body},
		goesTo{"subject", &m.Subject}, goesTo{"task_id", &m.Task})
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
	return m, m.options(o)
}

func outboundTargets(o object) (targets []string, err error) {
	if raw, ok := o.get("targets"); ok {
		if json.Unmarshal(raw, &targets) != nil {
			return nil, badRequest("targets must be a list of strings")
		}
	}
	one, err := o.text("target_agent")
	if len(targets) == 0 && one != "" {
		targets = []string{one}
	}
	return targets, err
}

// options reads how the message is sent, and checks what there is by now.
func (m *outbound) options(o object) error {
	if _, err := o.object("routing_info"); err != nil {
		return err
	}
	if _, err := o.flag("ignore_stream_pings"); err != nil {
		return err
	}
	kind, err := o.text("msg_type")
	if err != nil {
		return err
	}
	if m.stream, err = o.flag("stream"); err != nil {
		return err
	}
	return m.check(kind)
}

func (m *outbound) check(kind string) error {
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

// parseBare reads a wrapper that is sent as it is. Who wrote it does not count:
// it is the caller's message.
func parseBare(body []byte, depth int) (*outbound, error) {
	w, err := readWrapper(body, depth)
	if err != nil {
		return nil, badRequest("error parsing request: %v", err)
	}
	if w.AuthToken == "" {
		return nil, unauthorized("user token is required: the member 'auth_token' must not be empty")
	}
	p := w.Payload
	m := &outbound{bare: true, request: p.ID, Post: swarm.Post{Task: p.TaskID, Subject: p.Subject, Body: p.Body}}
	for _, r := range p.Recipients {
		target := r.Name
		if !strings.Contains(target, "@") && w.TargetSwarm != "" {
			target = mail.FormatAddr(target, w.TargetSwarm)
		}
		m.To = append(m.To, target)
	}
	return m, m.check(string(w.Type))
}
