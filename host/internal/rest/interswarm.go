package rest

import (
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// interswarmMessage is POST /interswarm/message. All its targets, here and at
// other swarms, are one post of the caller's: it is taken whole or not at all, and
// the caller's token goes nowhere (G-79).
func (c *call) interswarmMessage() error {
	m, err := parseOutbound(c.body, c.h.opt.MaxDepth)
	if err != nil {
		return err
	}
	if _, err := hopsOf(c.r.Header); err != nil {
		return err
	}
	if err := c.checkTargets(m.To); err != nil {
		return err
	}
	if m.Key, err = idempotencyKey(c.r.Header); err != nil {
		return err
	}
	m.Principal, m.Swarm, m.Door = c.principal(), c.h.opt.Swarm, door
	m.Digest, m.Trace = m.digest(), trace(c.r.Header)
	receipt, err := c.h.rt.Submit(c.ctx(), m.Post)
	if err != nil {
		return err
	}
	m.Task = receipt.Task.Task
	c.w.Header().Set(taskHeader, headerText(m.Task))
	answer, err := c.held(c.ctx(), receipt)
	if err != nil {
		return waited(err)
	}
	c.w.Header().Set(finishHeader, answer.Subject)
	if answer.Subject == mail.SubjectRouterError && answer.Caller == "" {
		return newFault(http.StatusBadGateway, "%s", answer.Body)
	}
	return c.replyOutbound(m, receipt.Task, c.outboundAnswer(m, answer))
}

// checkTargets looks at what a caller can mend without knowing the swarm's peers.
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
				return noRouter
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

// outboundAnswer is the answer as a message from the agent that gave it.
func (c *call) outboundAnswer(m *outbound, a swarm.Answer) mail.Message {
	from, of := mail.Address{Type: mail.Agent, Name: a.Caller}, c.h.opt.Swarm
	if a.Caller == "" {
		from = mail.Address{Type: mail.System, Name: c.h.opt.Swarm}
	} else if _, abroad, _ := mail.ParseAddr(a.Caller); abroad != "" {
		of = abroad
	}
	to := mail.Address{Type: mail.AddressType(m.Principal.Role), Name: m.Principal.ID}
	return mail.Message{
		ID: uuid.NewString(), Timestamp: stamp(c.h.opt.Now()), Type: mail.Response,
		Payload: mail.Payload{
			TaskID: m.Task, ID: m.request, Sender: from, Recipients: []mail.Address{to}, Subject: m.Subject, Body: a.Body,
			SenderSwarm: of, RecipientSwarms: []string{c.h.opt.Swarm},
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

// waited is what a caller is told whose wait ended without an answer.
func waited(err error) error {
	if errors.Is(err, swarm.ErrDraining) {
		return shutting()
	}
	return err
}
