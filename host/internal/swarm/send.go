package swarm

import (
	"context"
	"errors"
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// send handles the four sending tools.
func (t *Turn) send(e *effect, args toolArgs) (string, *abi.Error) {
	if fault := checkSize(args.Body); fault != nil {
		return "", fault
	}
	if mail.Reserved(args.Subject) {
		return "", t.complain(e, abi.CodeInvalid, "subject",
			"error sending message: subjects that begin with '::' are the system's")
	}
	if len(args.Subject) > MaxSubject {
		return "", abi.Errorf(abi.CodeLimit, abi.OpMail, "subject", "subject has %d bytes, at most %d", len(args.Subject), MaxSubject)
	}
	if e.call.Name == mail.ToolSendBroadcast {
		return t.sendBroadcast(e, args)
	}
	names, fault := t.reach(e, args.Target)
	if fault == nil {
		fault = t.fits(abi.OpMail, len(names))
	}
	if fault != nil {
		return "", fault
	}
	e.recipients = names
	kind, payloadID := mail.Interrupt, ""
	switch e.call.Name {
	case mail.ToolSendRequest:
		kind, payloadID = mail.Request, t.newID()
		for _, n := range names {
			e.opens = append(e.opens, OpenRequest{ID: payloadID, From: t.agent.Name, To: n})
		}
	case mail.ToolSendResponse:
		kind, payloadID = mail.Response, t.answers(names[0])
		e.closes = payloadID
	}
	t.address(e, kind, payloadID, args)
	return "message sent", nil
}

// address builds the message; one for all is addressed to all (S-05).
func (t *Turn) address(e *effect, kind mail.Type, payloadID string, args toolArgs) {
	to := mail.Address{Type: mail.Agent, Name: e.recipients[0]}
	if args.Target == mail.ReservedAll {
		to.Name = mail.ReservedAll
	}
	m := t.compose(kind, payloadID, []mail.Address{to}, args.Subject, args.Body)
	e.message = &m
}

// reach resolves the target of a request, response or interrupt to local
// agents. comm_targets is checked here and now, and the refusal also reaches
// the agent's mail.
func (t *Turn) reach(e *effect, target string) ([]string, *abi.Error) {
	if target == mail.ReservedAll {
		return t.audience(e, nil)
	}
	name, swarm, err := mail.ParseAddr(target)
	if err != nil {
		return nil, t.complain(e, abi.CodeInvalid, "target", "error sending message: target %q: %v", target, err)
	}
	local := swarm == "" || swarm == t.def.Name
	if t.again == nil && !t.mayWrite(name, swarm) {
		if local && name == t.userID() {
			return nil, t.complain(e, abi.CodeInvalid, "user",
				"agents do not write to the user; the finish message of task_complete reaches %q", name)
		}
		return nil, t.complain(e, abi.CodeDenied, "comm_targets",
			"agent %q may not write to %q; add it to [agents.%s] comm_targets", t.agent.Name, target, t.agent.Name)
	}
	if !local {
		return nil, t.remote(e, target, swarm)
	}
	if !t.knows(name) {
		return nil, t.complain(e, abi.CodeNotFound, "agent", "there is no agent %q in swarm %q", name, t.def.Name)
	}
	return []string{name}, nil
}

// knows reports whether the swarm has an agent, or had when the call was first
// made.
func (t *Turn) knows(name string) bool {
	_, ok := t.def.agent(name)
	return ok || t.again != nil
}

// remote refuses a message that no peer would take.
func (t *Turn) remote(e *effect, target, swarm string) *abi.Error {
	err := t.rt.forward.Check(context.Background(), t.task.key.InstanceKey, swarm)
	if err == nil {
		err = errors.New("this host does not forward mail")
	}
	return t.complain(e, abi.CodeUnavailable, "router", "cannot send to %q: %v", target, err)
}

// mayWrite checks comm_targets. A local agent may be listed bare or with its
// own swarm's name.
func (t *Turn) mayWrite(name, swarm string) bool {
	own := t.def.Name
	forms := []string{mail.FormatAddr(name, swarm)}
	if swarm == "" || swarm == own {
		forms = []string{name, mail.FormatAddr(name, own)}
	}
	return slices.ContainsFunc(t.agent.Targets, func(x string) bool { return slices.Contains(forms, x) })
}

// userID is the id of the principal the task belongs to.
func (t *Turn) userID() string {
	_, id, _ := strings.Cut(t.task.key.Instance, ":")
	return id
}

// sendBroadcast reaches the named agents, or all but the sender.
func (t *Turn) sendBroadcast(e *effect, args toolArgs) (string, *abi.Error) {
	names, fault := t.audience(e, args.Targets)
	if fault == nil {
		fault = t.fits(abi.OpMail, len(names))
	}
	if fault != nil {
		return "", fault
	}
	to := []mail.Address{{Type: mail.Agent, Name: mail.ReservedAll}}
	if len(args.Targets) > 0 && !slices.Contains(args.Targets, mail.ReservedAll) {
		to = nil
		for _, n := range names {
			to = append(to, mail.Address{Type: mail.Agent, Name: n})
		}
	}
	m := t.compose(mail.Broadcast, "", to, args.Subject, args.Body)
	e.message, e.recipients = &m, names
	return "message sent", nil
}

func (t *Turn) audience(e *effect, targets []string) ([]string, *abi.Error) {
	if len(targets) == 0 || slices.Contains(targets, mail.ReservedAll) {
		names := t.def.others(t.agent.Name)
		if len(names) == 0 && t.again == nil {
			return nil, t.complain(e, abi.CodeNotFound, "audience",
				"error sending message: swarm %q has no other agent", t.def.Name)
		}
		return names, nil
	}
	var names []string
	for _, target := range targets {
		name, swarm, err := mail.ParseAddr(target)
		if err != nil {
			return nil, t.complain(e, abi.CodeInvalid, "target", "error sending message: target %q: %v", target, err)
		}
		if swarm != "" && swarm != t.def.Name {
			return nil, t.remote(e, target, swarm)
		}
		if !t.knows(name) {
			return nil, t.complain(e, abi.CodeNotFound, "agent", "there is no agent %q in swarm %q", name, t.def.Name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// answers finds the request that a response to an agent answers: the
// one in hand, else the oldest open one, else a fresh id.
func (t *Turn) answers(to string) string {
	// Made in any case: what the list of requests holds may differ when the
	// turn is run again, and later ids must not.
	fresh := t.newID()
	m := t.row.Message
	if m.Type == mail.Request && m.Payload.Sender.Type == mail.Agent && m.Payload.Sender.Name == to {
		return m.Payload.ID
	}
	for _, r := range t.rec.Requests {
		if r.From == to && r.To == t.agent.Name {
			return r.ID
		}
	}
	return fresh
}
