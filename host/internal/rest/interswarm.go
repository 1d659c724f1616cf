package rest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// outbound is the body of POST /interswarm/message, understood.
type outbound struct {
	swarm.Post
	targets []string
	// stream asks for the task's log beside the answer.
	stream bool
	// request is the id that the answer bears; bare means that the caller sent
	// a wrapper, and is answered with the message alone.
	request string
	bare    bool
}

// interswarmMessage is POST /interswarm/message. Targets of this swarm
// are served here, as posts of the caller are.
func (c *call) interswarmMessage() error {
	m, err := parseOutbound(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	entrypoints, err := c.localTargets(m.targets)
	if err != nil {
		return err
	}
	m.Principal, m.Swarm, m.Door, m.Trace = c.principal(), c.h.opt.Swarm, door, trace(c.r.Header)
	var receipts []*swarm.Receipt
	for _, entrypoint := range entrypoints {
		m.Entrypoint = entrypoint
		receipt, err := c.h.rt.Submit(c.ctx(), m.Post)
		if err != nil {
			return err
		}
		m.Task = receipt.Task.Task
		receipts = append(receipts, receipt)
	}
	c.w.Header().Set(taskHeader, headerText(m.Task))
	var answer swarm.Answer
	for _, receipt := range receipts {
		if answer, err = c.held(c.ctx(), receipt); err != nil {
			return waited(err)
		}
	}
	c.w.Header().Set(finishHeader, answer.Subject)
	return c.replyOutbound(m, c.task(m.Task), c.outboundAnswer(m, answer))
}

// localTargets are the agents that targets name. All are looked at before a
// message is made.
func (c *call) localTargets(targets []string) ([]string, error) {
	def, err := c.definition()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, target := range targets {
		name, to, err := mail.ParseAddr(target)
		if err != nil {
			return nil, badRequest("targets: %v", err)
		}
		if to != "" && to != c.h.opt.Swarm {
			return nil, noRouter
		}
		i := slices.IndexFunc(def.Agents, func(a swarm.Agent) bool { return a.Name == name })
		switch {
		case i < 0:
			return nil, badRequest("targets: '%s' is not an agent of swarm '%s'", name, c.h.opt.Swarm)
		case !def.Agents[i].Entrypoint:
			return nil, badRequest("targets: agent '%s' is not an entrypoint (enable_entrypoint is false)", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, nil
}

// outboundAnswer is the answer as a message from the agent that gave it.
func (c *call) outboundAnswer(m *outbound, a swarm.Answer) mail.Message {
	from := mail.Address{Type: mail.Agent, Name: a.Caller}
	if a.Caller == "" {
		from = mail.Address{Type: mail.System, Name: c.h.opt.Swarm}
	}
	to := mail.Address{Type: mail.AddressType(m.Principal.Role), Name: m.Principal.ID}
	return mail.Message{
		ID: uuid.NewString(), Timestamp: stamp(c.h.opt.Now()), Type: mail.Response,
		Payload: mail.Payload{
			TaskID: m.Task, ID: m.request, Sender: from, Recipients: []mail.Address{to}, Subject: m.Subject, Body: a.Body,
			SenderSwarm: c.h.opt.Swarm, RecipientSwarms: []string{c.h.opt.Swarm},
		},
	}
}

func (c *call) replyOutbound(m *outbound, task swarm.TaskKey, answer mail.Message) error {
	switch {
	case m.bare:
		return c.reply(answer)
	case m.stream:
		return c.replyWithLog(answer, task)
	}
	return c.reply(struct {
		Response mail.Message  `json:"response"`
		Events   []loggedEvent `json:"events"`
	}{answer, nil})
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
	for _, field := range []struct {
		name string
		to   *string
	}{
		{"user_token", &token}, {"message", &m.Body}, {"body", &m.Body}, {"subject", &m.Subject}, {"task_id", &m.Task},
	} {
		text, err := o.text(field.name)
		if err != nil {
			return nil, err
		}
		if text != "" {
			*field.to = text
		}
	}
	if token == "" {
		return nil, unauthorized("user token is required")
	}
	if m.Subject == "" {
		m.Subject = "Interswarm Message"
	}
	if m.targets, err = outboundTargets(o); err != nil {
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
	if len(m.targets) == 0 || m.Body == "" {
		return badRequest("'targets' and 'body' are required")
	}
	switch m.Type = mail.Type(kind); m.Type {
	case "":
		m.Type = mail.Request
	case mail.Request, mail.Broadcast:
	default:
		return badRequest("msg_type '%s' is not supported for interswarm send", kind)
	}
	if m.Type == mail.Request && len(m.targets) != 1 {
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
		return nil, unauthorized("user token is required")
	}
	p := w.Payload
	m := &outbound{bare: true, request: p.ID, Post: swarm.Post{Task: p.TaskID, Subject: p.Subject, Body: p.Body}}
	for _, r := range p.Recipients {
		target := r.Name
		if !strings.Contains(target, "@") && w.TargetSwarm != "" {
			target = mail.FormatAddr(target, w.TargetSwarm)
		}
		m.targets = append(m.targets, target)
	}
	return m, m.check(string(w.Type))
}

// waited is what a caller is told whose wait ended without an answer.
func waited(err error) error {
	if errors.Is(err, swarm.ErrDraining) {
		return shutting()
	}
	return err
}
