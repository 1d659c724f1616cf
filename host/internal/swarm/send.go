package swarm

import (
	"slices"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// send handles the sending tools.
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
	switch e.call.Name {
	case mail.ToolSendBroadcast:
		return t.sendBroadcast(e, args)
	case mail.ToolSendInterswarmBroadcast:
		return t.sendCircular(e, args)
	}
	to, fault := t.reach(e, args.Target)
	if fault == nil {
		fault = t.fits(abi.OpMail, to.size())
	}
	if fault != nil {
		return "", fault
	}
	e.recipients = to.local
	kind, payloadID := mail.Interrupt, ""
	switch e.call.Name {
	case mail.ToolSendRequest:
		kind, payloadID = mail.Request, t.newID()
		for _, n := range to.local {
			e.opens = append(e.opens, OpenRequest{ID: payloadID, From: t.agent.Name, To: n})
		}
	case mail.ToolSendResponse:
		kind, payloadID = mail.Response, t.answers(to.first())
		e.closes = payloadID
	}
	if len(to.away) == 0 {
		t.address(e, kind, payloadID, args)
		return "message sent", nil
	}
	l := t.letter(kind, payloadID, to.away[0], args.Subject, args.Body)
	if open, ok := l.opens(); ok {
		e.opens = append(e.opens, open)
	}
	e.letters = append(e.letters, l)
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

// reach resolves the target of a request, response or interrupt. comm_targets is
// checked here and now, and the refusal also reaches the agent's mail.
func (t *Turn) reach(e *effect, target string) (to audience, fault *abi.Error) {
	if t.everybody(target) {
		return t.audience(e, nil)
	}
	name, swarm, err := mail.ParseAddr(target)
	if err != nil {
		return to, t.complain(e, abi.CodeInvalid, "target", "error sending message: target %q: %v", target, err)
	}
	local := swarm == "" || swarm == t.def.Name
	if t.again == nil && !t.mayWrite(name, swarm) {
		if local && name == t.userID() {
			return to, t.complain(e, abi.CodeInvalid, "user",
				"agents do not write to the user; the finish message of task_complete reaches %q", name)
		}
		return to, t.complain(e, abi.CodeDenied, "comm_targets",
			"agent %q may not write to %q; add it to [agents.%s] comm_targets", t.agent.Name, target, t.agent.Name)
	}
	return to, t.take(e, &to, name, swarm)
}

// everybody reports whether a target is all agents of this swarm, by either name.
func (t *Turn) everybody(target string) bool {
	return target == mail.ReservedAll || target == mail.FormatAddr(mail.ReservedAll, t.def.Name)
}

// take adds an agent to those that get a message. One of this swarm may bear its
// name.
func (t *Turn) take(e *effect, to *audience, name, swarm string) *abi.Error {
	if swarm != "" && swarm != t.def.Name {
		to.add(name, swarm)
		return t.mayLeave(e, name, swarm)
	}
	if !t.knows(name) {
		return t.complain(e, abi.CodeNotFound, "agent", "there is no agent %q in swarm %q", name, t.def.Name)
	}
	to.add(name, "")
	return nil
}

// knows reports whether the swarm has an agent, or had when the call was first
// made.
func (t *Turn) knows(name string) bool {
	_, ok := t.def.agent(name)
	return ok || t.again != nil
}

// mayWrite checks comm_targets. A local agent may be listed bare or with its
// own swarm's name, another swarm's by a star for its agents.
func (t *Turn) mayWrite(name, swarm string) bool {
	return t.agent.mayWrite(t.def.Name, name, swarm)
}

func (a Agent) mayWrite(own, name, swarm string) bool {
	forms := []string{mail.FormatAddr(name, swarm), "*@" + swarm, "*@*"}
	if swarm == "" || swarm == own {
		forms = []string{name, mail.FormatAddr(name, own)}
	}
	return slices.ContainsFunc(a.Targets, func(x string) bool { return slices.Contains(forms, x) })
}

// userID is the id of the principal the task belongs to.
func (t *Turn) userID() string {
	_, id, _ := strings.Cut(t.task.key.Instance, ":")
	return id
}

// sendBroadcast reaches the named agents, or all but the sender. Those of another
// swarm get one message together.
func (t *Turn) sendBroadcast(e *effect, args toolArgs) (string, *abi.Error) {
	all := len(args.Targets) == 0 || slices.ContainsFunc(args.Targets, t.everybody)
	to, fault := t.audience(e, args.Targets)
	if fault == nil {
		fault = t.fits(abi.OpMail, to.size())
	}
	if fault != nil {
		return "", fault
	}
	if len(to.local) > 0 {
		m := t.compose(mail.Broadcast, "", broadcastTo(to.local, all), args.Subject, args.Body)
		e.message, e.recipients = &m, to.local
	}
	for _, away := range to.away {
		e.letters = append(e.letters, t.letter(mail.Broadcast, "", away, args.Subject, args.Body))
	}
	return "message sent", nil
}

func broadcastTo(names []string, all bool) (to []mail.Address) {
	if all {
		return []mail.Address{{Type: mail.Agent, Name: mail.ReservedAll}}
	}
	for _, n := range names {
		to = append(to, mail.Address{Type: mail.Agent, Name: n})
	}
	return to
}

// audience resolves a list of targets. None are all.
func (t *Turn) audience(e *effect, targets []string) (to audience, fault *abi.Error) {
	if len(targets) == 0 || slices.ContainsFunc(targets, t.everybody) {
		to.local = t.def.others(t.agent.Name)
		if len(to.local) == 0 && t.again == nil {
			return to, t.complain(e, abi.CodeNotFound, "audience",
				"error sending message: swarm %q has no other agent", t.def.Name)
		}
	}
	for _, target := range targets {
		if t.everybody(target) {
			continue
		}
		name, swarm, err := mail.ParseAddr(target)
		if err != nil {
			return to, t.complain(e, abi.CodeInvalid, "target", "error sending message: target %q: %v", target, err)
		}
		if swarm != "" && swarm != t.def.Name && t.again == nil && !t.mayWrite(name, swarm) {
			return to, t.complain(e, abi.CodeDenied, "comm_targets",
				"agent %q may not write to %q; add it to [agents.%s] comm_targets", t.agent.Name, target, t.agent.Name)
		}
		if fault := t.take(e, &to, name, swarm); fault != nil {
			return to, fault
		}
	}
	return to, nil
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
