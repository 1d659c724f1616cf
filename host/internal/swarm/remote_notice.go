package swarm

import (
	"slices"

	"skep/spec/mail"
)

// taskEnd describes how a task ended, for other swarms.
type taskEnd struct {
	// by is the agent that completed it, empty for the system.
	by            string
	subject, body string
	// endedBy is the swarm that ended the task and needs no notice.
	endedBy string
}

// notifyPeersOfEnd sends the end of the task to other swarms: contributors are
// dismissed, and the caller is answered. Open requests must still be in
// the record.
func (mut *mutationBuilder) notifyPeersOfEnd(e taskEnd) {
	for _, p := range slices.Clone(mut.Task.Peers) {
		switch {
		case p.Swarm == e.endedBy, !mut.Task.hasContributor(p.Swarm) && !mut.hasOutboxMessageFor(p.Swarm):
		case p.Swarm != mut.Task.Caller:
			mut.addNotice(p, e.by, "", mail.SubjectTaskComplete, e.body)
		case mut.Task.Door != "":
			// The exchanges of a gateway's realm are answered one by one.
		case e.by != "":
			mut.sendCallerAnswer(p, e)
		default:
			mut.sendCallerFailure(e.subject, e.body, false)
		}
	}
}

// hasOutboxMessageFor reports whether the outbox, with this mutation, has messages for
// a swarm.
func (mut *mutationBuilder) hasOutboxMessageFor(swarm string) bool {
	forIt := func(msg OutboxMessage) bool { return msg.Peer == swarm && msg.Dead == nil }
	return slices.ContainsFunc(mut.active.outbox, forIt) || slices.ContainsFunc(mut.Outbox, forIt)
}

// sendCallerAnswer sends the finish message to the agent that made the last request.
func (mut *mutationBuilder) sendCallerAnswer(p TaskPeer, e taskEnd) {
	id := ""
	if open := mut.Task.requestsFrom(p.Swarm); len(open) > 0 {
		last := open[len(open)-1]
		id = last.ID
		p.Agent, _, _ = mail.ParseAddr(last.From)
	}
	mut.addNotice(p, e.by, id, mail.SubjectTaskComplete, e.body)
}

// sendCallerFailure sends a system message in place of the answer to every requesting
// agent of the calling swarm. With open their requests stay open; of exchanges only
// those with a reply address are told then.
func (mut *mutationBuilder) sendCallerFailure(subject, body string, open bool) {
	notified := map[string]bool{}
	for _, r := range mut.Task.requestsFrom(mut.Task.Caller) {
		if r.Exchange != nil && (!open || !r.Exchange.Reply) {
			continue
		}
		if !notified[r.From] || r.Exchange != nil {
			mut.sendRemoteReply(r, subject, body)
		}
		notified[r.From] = true
		if !open {
			mut.closeRequest(r.ID)
		}
	}
}

// failRemoteRequest answers another swarm's agent that the turn of an agent for its
// message has failed.
func (mut *mutationBuilder) failRemoteRequest(agent string, m mail.Message, text string) {
	if i := mut.Task.findExchange(m.Payload.ID, m.Payload.Sender.Name, agent); i >= 0 {
		mut.failExchange(i, mail.SubjectAgentError, text)
		return
	}
	open := mut.Task.Requests
	i := slices.IndexFunc(open, func(r OpenRequest) bool {
		return r.Exchange == nil && r.ID == m.Payload.ID && r.From == m.Payload.Sender.Name
	})
	if i >= 0 {
		mut.sendRemoteReply(open[i], mail.SubjectAgentError, text)
		mut.closeRequest(m.Payload.ID)
	}
}

// sendRemoteReply answers a request of another swarm's agent in the system's name.
func (mut *mutationBuilder) sendRemoteReply(r OpenRequest, subject, body string) {
	if to := r.sender(); to.Swarm != "" {
		mut.addNotice(to, "", r.ID, subject, body)
	}
}

// sender is the agent of another swarm that made the request.
func (r OpenRequest) sender() TaskPeer {
	name, peer, _ := mail.ParseAddr(r.From) // a zero one for a malformed address
	return TaskPeer{Swarm: peer, Agent: name}
}

// addNotice adds a response of the host to the outbox. An empty by means the system, an
// empty id a fresh one.
func (mut *mutationBuilder) addNotice(to TaskPeer, by, id, subject, body string) {
	mut.addToOutbox(mut.newNotice(to, by, id, subject, body))
}

func (mut *mutationBuilder) newNotice(to TaskPeer, by, id, subject, body string) OutboxMessage {
	m := mut.systemMessage(mail.Response, mail.FormatAddr(to.Agent, to.Swarm), subject, body)
	if by != "" {
		m.Payload.Sender = mail.Address{Type: mail.Agent, Name: by}
	}
	if id != "" {
		m.Payload.ID = id
	}
	m.Payload.RecipientSwarms = []string{to.Swarm}
	m.Payload.RoutingInfo = routingInfo("origin_swarm", mut.def.Name, "remote_swarm", to.Swarm)
	return OutboxMessage{ID: m.ID, Peer: to.Swarm, Message: m, Notice: true}
}
