package swarm

import (
	"slices"

	"skep/abi"
	"skep/spec/mail"
)

// sendMail runs the sending tools.
func (t *Turn) sendMail(e *stagedCall, args toolArgs) (string, *abi.Error) {
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
		return t.sendInterswarmBroadcast(e, args)
	}
	to, fault := t.resolveTarget(e, args.Target)
	if fault == nil && !e.inExchange { // the answer of an exchange takes no place
		fault = t.checkQuota(abi.OpMail, to.size())
	}
	if fault != nil {
		return "", fault
	}
	e.recipients = to.local
	kind, payloadID := mail.Interrupt, ""
	switch e.call.Name {
	case mail.ToolSendRequest:
		kind, payloadID = mail.Request, t.newID()
		e.asked = payloadID
		for _, n := range to.local {
			e.opens = append(e.opens, OpenRequest{ID: payloadID, From: t.agent.Name, To: n})
		}
	case mail.ToolSendResponse:
		kind, payloadID = mail.Response, t.answeredRequest(e, to.first())
		e.closes = payloadID
	}
	if len(to.remote) == 0 {
		t.addressMessage(e, kind, payloadID, args)
		return "message sent", nil
	}
	msg := t.newOutboxMessage(kind, payloadID, to.remote[0], args.Subject, args.Body)
	if open, ok := msg.openRequest(); ok {
		e.opens = append(e.opens, open)
	}
	e.outbox = append(e.outbox, msg)
	return "message sent", nil
}

// addressMessage makes the message; one for all agents is addressed to all (S-05).
func (t *Turn) addressMessage(e *stagedCall, kind mail.Type, payloadID string, args toolArgs) {
	to := mail.Address{Type: mail.Agent, Name: e.recipients[0]}
	if args.Target == mail.ReservedAll {
		to.Name = mail.ReservedAll
	}
	m := t.newMessage(kind, payloadID, []mail.Address{to}, args.Subject, args.Body)
	e.message = &m
}

// sendBroadcast sends to the named agents, or to all but the sender. Agents of one
// other swarm get one message together.
func (t *Turn) sendBroadcast(e *stagedCall, args toolArgs) (string, *abi.Error) {
	all := len(args.Targets) == 0 || slices.ContainsFunc(args.Targets, t.isAll)
	to, fault := t.resolveTargets(e, args.Targets)
	if fault == nil {
		fault = t.checkQuota(abi.OpMail, to.size())
	}
	if fault != nil {
		return "", fault
	}
	if len(to.local) > 0 {
		m := t.newMessage(mail.Broadcast, "", broadcastTo(to.local, all), args.Subject, args.Body)
		e.message, e.recipients = &m, to.local
	}
	for _, group := range to.remote {
		e.outbox = append(e.outbox, t.newOutboxMessage(mail.Broadcast, "", group, args.Subject, args.Body))
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

// answeredRequest finds the id of the request that a response to an agent answers
// the turn's message, else the oldest open request, else a fresh id.
func (t *Turn) answeredRequest(e *stagedCall, to string) string {
	// The id is made in any case: the open requests may differ in a repeated turn, and
	// later ids must not.
	fresh := t.newID()
	if e.closes != "" {
		return e.closes
	}
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
