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
// agent of the calling swarm. With open their requests stay open.
func (mut *mutationBuilder) sendCallerFailure(subject, body string, open bool) {
	notified := map[string]bool{}
	for _, r := range mut.Task.requestsFrom(mut.Task.Caller) {
		if !notified[r.From] {
			mut.sendRemoteReply(r, subject, body)
		}
		notified[r.From] = true
		if !open {
			mut.closeRequest(r.ID)
		}
	}
}

// failRemoteRequest answers another swarm's agent that the turn for its message has
// failed.
func (mut *mutationBuilder) failRemoteRequest(m mail.Message, text string) {
	open := mut.Task.Requests
	i := slices.IndexFunc(open, func(r OpenRequest) bool { return r.ID == m.Payload.ID && r.From == m.Payload.Sender.Name })
	if i >= 0 {
		mut.sendRemoteReply(open[i], mail.SubjectAgentError, text)
		mut.closeRequest(m.Payload.ID)
	}
}

// sendRemoteReply answers a request of another swarm's agent in the system's name.
func (mut *mutationBuilder) sendRemoteReply(r OpenRequest, subject, body string) {
	name, peer, err := mail.ParseAddr(r.From)
	if err != nil {
		return
	}
	mut.addNotice(TaskPeer{Swarm: peer, Agent: name}, "", r.ID, subject, body)
}

// addNotice adds a response of the host to the outbox. An empty by means the system, an
// empty id a fresh one.
func (mut *mutationBuilder) addNotice(to TaskPeer, by, id, subject, body string) {
	m := mut.systemMessage(mail.Response, mail.FormatAddr(to.Agent, to.Swarm), subject, body)
	if by != "" {
		m.Payload.Sender = mail.Address{Type: mail.Agent, Name: by}
	}
	if id != "" {
		m.Payload.ID = id
	}
	m.Payload.RecipientSwarms = []string{to.Swarm}
	m.Payload.RoutingInfo = routingInfo("origin_swarm", mut.def.Name, "remote_swarm", to.Swarm)
	mut.addToOutbox(OutboxMessage{ID: m.ID, Peer: to.Swarm, Message: m, Notice: true})
}
