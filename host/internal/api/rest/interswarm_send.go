package rest

import (
	"net/http"
	"slices"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// interswarmMessage is POST /interswarm/message. All its targets, local
// and remote, are one post: it is accepted whole or not at all. The caller's
// token is not forwarded (G-79).
func (c *call) interswarmMessage() error {
	o, err := c.bodyObject()
	if err != nil {
		return err
	}
	m, err := readOutbound(o, c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	if _, err := parseHops(c.r.Header); err != nil {
		return err
	}
	if err := c.checkTargets(m.To); err != nil {
		return err
	}
	if m.Key, err = idempotencyKey(c.r.Header); err != nil {
		return err
	}
	m.Digest = m.digest()
	task, answer, err := c.submitAndWait(m.Post)
	if err != nil {
		return err
	}
	m.Principal, m.Task = c.principal(), task.Task
	if answer.Subject == mail.SubjectRouterError && answer.Caller == "" {
		return newFault(http.StatusBadGateway, "%s", answer.Body)
	}
	return c.replyOutbound(m, task, c.outboundAnswer(m, answer))
}

// checkTargets checks what does not depend on the known peers.
func (c *call) checkTargets(targets []string) error {
	def, err := c.definition()
	if err != nil {
		return err
	}
	for _, target := range targets {
		name, to, err := mail.ParseAddr(target)
		if err != nil {
			return badRequest("targets: %v", err)
		}
		if to != "" && to != def.Name {
			if !def.Interswarm {
				return errNoRouter
			}
			continue
		}
		i := slices.IndexFunc(def.Agents, func(a swarm.Agent) bool { return a.Name == name })
		switch {
		case i < 0:
			return badRequest("targets: '%s' is not an agent of swarm '%s'", name, def.Name)
		case !def.Agents[i].Entrypoint:
			return badRequest("targets: agent '%s' is not an entrypoint (enable_entrypoint is false)", name)
		}
	}
	return nil
}

// outboundAnswer returns the answer as a message from the agent that gave it.
func (c *call) outboundAnswer(m *outboundPost, a swarm.Answer) mail.Message {
	from, of := mail.Address{Type: mail.Agent, Name: a.Caller}, c.h.opt.Swarm
	if a.Caller == "" {
		from = mail.Address{Type: mail.System, Name: c.h.opt.Swarm}
	} else if _, abroad, _ := mail.ParseAddr(a.Caller); abroad != "" {
		of = abroad
	}
	to := mail.Address{Type: mail.AddressType(m.Principal.Role), Name: m.Principal.ID}
	return mail.Message{
		ID: uuid.NewString(), Timestamp: formatTime(c.h.opt.Now()), Type: mail.Response,
		Payload: mail.Payload{
			TaskID: m.Task, ID: m.requestID, Sender: from, Recipients: []mail.Address{to}, Subject: m.Subject, Body: a.Body,
			SenderSwarm: of, RecipientSwarms: []string{c.h.opt.Swarm},
		},
	}
}

func (c *call) replyOutbound(m *outboundPost, task swarm.TaskKey, answer mail.Message) error {
	switch {
	case m.wrapped:
		return c.reply(answer)
	case m.stream:
		return c.replyWithLog(answer, task)
	}
	return c.reply(struct {
		Response mail.Message  `json:"response"`
		Events   *loggedEvents `json:"events"`
	}{Response: answer})
}
