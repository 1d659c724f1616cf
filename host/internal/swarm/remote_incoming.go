package swarm

import (
	"cmp"
	"fmt"
	"slices"

	"skep/spec/mail"
)

// checkIncoming returns the message as it stands here and its recipients, or why the task refuses it.
// The caller holds t.commit.
func (t *activeTask) checkIncoming(in Incoming) (message mail.Message, names, unknown []string, err error) {
	if err := in.checkTask(t); err != nil {
		return message, nil, nil, err
	}
	if names, unknown, err = in.localRecipients(t); err != nil {
		return message, nil, nil, err
	}
	if message, err = in.newLocalMessage(t.def.Name); err != nil {
		return message, nil, nil, err
	}
	if err := t.checkStashLimits(in, names); err != nil {
		return message, nil, nil, err
	}
	return message, names, unknown, t.checkRequests(in, names)
}

// localRecipients are the local agents that a wrapper names. Messages that the runtime
// itself handles need none. Of several recipients of a gateway's message the unknown ones
// are returned apart.
func (in Incoming) localRecipients(t *activeTask) (names, unknown []string, err error) {
	def := t.def
	for _, r := range in.Wrapper.Payload.Recipients {
		name, to, err := mail.ParseAddr(r.Name)
		if err != nil {
			return nil, nil, refuse(ErrInvalid, "recipient '%s': %v", r.Name, err)
		}
		if to != "" && to != def.Name {
			continue
		}
		if name == mail.ReservedAll && !isGateway(in.Door) {
			names = append(names, def.interswarmAgents()...)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if mail.Reserved(in.Wrapper.Payload.Subject) {
		return names, nil, nil
	}
	var first error
	names = slices.DeleteFunc(names, func(name string) bool {
		err := in.checkRecipient(t, name)
		if err != nil {
			unknown = append(unknown, name)
			first = cmp.Or(first, err)
		}
		return err != nil
	})
	switch {
	case first != nil && (len(names) == 0 || !isGateway(in.Door)):
		return nil, nil, first
	case len(names) == 0:
		return nil, nil, refuse(ErrInvalid, "no recipient is an agent of swarm '%s'", def.Name)
	}
	return names, unknown, nil
}

// checkRecipient refuses a local agent that a wrapper must not reach. To a gateway an
// agent that is not exposed is unknown, unless it waits for the answer.
func (in Incoming) checkRecipient(t *activeTask, name string) error {
	switch a, ok := t.def.agent(name); {
	case !ok, isGateway(in.Door) && !slices.Contains(a.Expose, in.gateway()) && !in.answers(t.rec, name):
		return refuse(ErrNotFound, "there is no agent '%s' in swarm '%s'", name, t.def.Name)
	case !a.Interswarm && !isGateway(in.Door):
		return refuse(ErrNotFound, "agent '%s' takes no mail from other swarms (enable_interswarm is false)", name)
	}
	return nil
}

// answers reports whether the wrapper is a response, or a question about a request, to an
// agent that has asked the swarm.
func (in Incoming) answers(t Task, agent string) bool {
	return (in.Back || in.Wrapper.Type == mail.Response) &&
		slices.ContainsFunc(t.requestsTo(in.Peer), func(r OpenRequest) bool { return r.From == agent })
}

// interswarmAgents are the agents that other swarms may write to.
func (d *Definition) interswarmAgents() (names []string) {
	for _, a := range d.Agents {
		if a.Interswarm {
			names = append(names, a.Name)
		}
	}
	return names
}

// newLocalMessage makes a local message of the wrapper: the sender's address includes
// its swarm.
func (in Incoming) newLocalMessage(local string) (mail.Message, error) {
	w := in.Wrapper
	p := w.Payload
	if name, _, err := mail.ParseAddr(p.Sender.Name); err == nil && p.Sender.Type == mail.Agent {
		p.Sender.Name = mail.FormatAddr(name, in.Peer)
	}
	p.SenderSwarm, p.RecipientSwarms = in.Peer, []string{local}
	if in.opensExchange() && len(p.Recipients) > 1 {
		p.Recipients = p.Recipients[:1] // each gets a message of its own
	}
	m := mail.Message{ID: w.MessageID, Timestamp: w.Timestamp, Type: w.Type, Payload: p}
	if !mail.ValidUUID(m.ID) {
		m.ID = newID()
	}
	if err := m.Validate(); err != nil {
		return mail.Message{}, refuse(ErrInvalid, "parameter 'message' is malformed: %v", err)
	}
	return m, nil
}

// applyIncoming applies a wrapper to its task.
func (mut *mutationBuilder) applyIncoming(in Incoming, o runner, m mail.Message, names []string) {
	if !mut.active.exists {
		mut.createForeignTask(in, o)
	}
	mut.Task.Brief = mut.Task.Brief || in.Brief && !in.Back && isGateway(in.Door)
	sender := m.Payload.Sender
	if sender.Type == mail.Agent {
		name, _, _ := mail.ParseAddr(sender.Name)
		mut.Task.recordIncomingPeer(in.Peer, name)
	}
	mut.Task.mergeContributors(mut.def.Name, in.Peer, in.Wrapper.TaskContributors)
	mut.logEvent("interswarm_message_received", "received interswarm message from swarm "+in.Peer, map[string]any{
		"message_id": in.Wrapper.MessageID, "swarm": in.Peer,
	})
	switch {
	case m.Payload.Subject == mail.SubjectTaskComplete:
		mut.handleRemoteComplete(in, m)
	case in.bringsResults():
		mut.handleRemoteResults(in)
	case mail.Reserved(m.Payload.Subject):
		mut.handleRemoteFailure(in, m, names)
	default:
		mut.deliverIncoming(in, m, names)
	}
}

// createForeignTask creates a task that belongs to another swarm.
func (mut *mutationBuilder) createForeignTask(in Incoming, o runner) {
	mut.Task = mut.newTask(in.Wrapper.TaskOwner, in.Trace)
	mut.Task.Caller, mut.Task.Hops, mut.Task.Entrypoint = in.Peer, in.Hops, mut.def.Entrypoint
	if isGateway(in.Door) {
		mut.Task.Door = in.Door
	}
	mut.Task.mergeContributors(mut.def.Name, in.Peer, in.Wrapper.TaskContributors)
	mut.Task.Contributors = append(mut.Task.Contributors, o.owner.String())
	mut.resetDeadline()
}

// deliverIncoming queues a message of another swarm's agent. A message for an ended
// task reopens it, is refused, or is stashed. A response that answers no open request is
// queued, too, as a local one is: MAIL does not refuse it.
func (mut *mutationBuilder) deliverIncoming(in Incoming, m mail.Message, names []string) {
	switch {
	case !mut.Task.State.Ended():
	case in.reopensTask(mut.Task):
		mut.reopenTask(in.Trace)
		mut.resetDeadline()
	case in.asks():
		mut.refuseLateRequest(m)
		return
	}
	sender := m.Payload.Sender.Name
	for _, name := range names {
		if in.opensExchange() {
			m.Payload.Recipients = []mail.Address{{Type: mail.Agent, Name: name}}
		}
		switch m.Type {
		case mail.Response:
			mut.removeAnswered(in, m.Payload.ID, name)
			if mut.handleRemoteResponse(in.Peer, mut.closeAnsweredRequest(m.Payload.ID, name, sender), m) {
				continue
			}
		case mail.Request, mail.Interrupt:
			if !in.opensExchange() && len(mut.Task.Requests) < maxOpenRequests {
				mut.Task.Requests = append(mut.Task.Requests, OpenRequest{ID: m.Payload.ID, From: sender, To: name})
			}
		}
		row := in.newRow(m, name)
		row.Late = mut.Task.State.Ended()
		n := mut.insertRow(row)
		if in.opensExchange() {
			mut.openExchange(in, m, name, n)
		}
	}
}

// newRow makes a row for an agent. A message of another swarm's system has the tier of
// an agent's.
func (in Incoming) newRow(m mail.Message, agent string) Row {
	ranked := m
	ranked.Payload.Sender.Type = mail.Agent
	return Row{
		Agent: agent, Tier: mail.Tier(ranked), Message: m, Hops: in.Hops, Trace: in.Trace, Cause: m.ID,
		Origin: Origin{Door: in.Door, Realm: in.Principal.Tenant, Principal: string(in.Principal.Role) + ":" + in.Principal.ID},
	}
}

// closeAnsweredRequest closes the request that a response answers: the one with its id,
// else the recipient's oldest to the sender (G-19). It returns the request, or a zero
// one.
func (mut *mutationBuilder) closeAnsweredRequest(id, agent, sender string) (closed OpenRequest) {
	match := func(r OpenRequest) bool { return r.From == agent && r.To == sender }
	i := slices.IndexFunc(mut.Task.Requests, func(r OpenRequest) bool { return match(r) && r.ID == id })
	if i < 0 {
		i = slices.IndexFunc(mut.Task.Requests, match)
	}
	if i >= 0 {
		closed = mut.Task.Requests[i]
		mut.Task.Requests = slices.Delete(mut.Task.Requests, i, i+1)
	}
	return closed
}

// handleRemoteComplete handles another swarm's task_complete: from the owner or the
// caller it ends the task, from a contributor it answers the open requests to it, from
// any other swarm it is ignored.
func (mut *mutationBuilder) handleRemoteComplete(in Incoming, m mail.Message) {
	if mut.Task.isForeign() && (in.Peer == ownerSwarm(mut.Task.Owner) || in.Peer == mut.Task.Caller) {
		mut.dismissTask(in, m)
		return
	}
	open := mut.Task.requestsTo(in.Peer)
	if len(open) == 0 || mut.Task.State.Ended() {
		mut.logEvent("interswarm_message_ignored", "swarm "+in.Peer+" completed what nobody had asked of it", map[string]any{"swarm": in.Peer})
		return
	}
	m.Payload.Subject = mail.SubjectInterswarmTaskComplete
	mut.answerRequesters(in, m, open)
	mut.dropPeerCalls(in.Peer)
}

// dismissTask ends a task at the request of the swarm that it is done for. No turn runs
// for it.
func (mut *mutationBuilder) dismissTask(in Incoming, m mail.Message) {
	if mut.Task.State.Ended() {
		return
	}
	mut.logMessage(m, map[string]any{"caller": m.Payload.Sender.Name, "completion": true})
	for _, a := range mut.def.Agents {
		mut.appendHistoryMessage(a.Name, 0, m)
	}
	mut.notifyPeersOfEnd(taskEnd{subject: mail.SubjectTaskComplete, body: m.Payload.Body, endedBy: in.Peer})
	mut.Task.State, mut.Task.Grace = StateCompleted, false
	mut.cancelBreakpoints()
	mut.stashRemaining()
	mut.answerPosts("task_complete", Answer{
		State: StateCompleted, Subject: mail.SubjectTaskComplete, Body: m.Payload.Body, Caller: m.Payload.Sender.Name,
	}, answersAll)
	mut.Task.Requests, mut.Task.PeerCalls = nil, nil
}

// answerRequesters sends a message to every agent with an open request to the swarm,
// and closes the requests.
func (mut *mutationBuilder) answerRequesters(in Incoming, m mail.Message, open []OpenRequest) {
	var notified []string
	for _, r := range open {
		mut.closeRequest(r.ID)
		if r.Post > 0 {
			mut.logMessage(m, map[string]any{"recipient": r.From})
			mut.collectRemoteAnswer(r, m.Payload.Body, false)
			continue
		}
		if slices.Contains(notified, r.From) {
			continue
		}
		notified = append(notified, r.From)
		to := r.From
		if _, ok := mut.def.agent(to); !ok {
			to = mut.Task.Entrypoint
		}
		mut.insertRow(in.newRow(m, to))
	}
}

// handleRemoteFailure handles a system message of another swarm in place of an answer.
// It counts only for open requests to that swarm. The report of a call that waits for
// people leaves the request open; the requesting agent gets it only when it cannot be
// recorded.
func (mut *mutationBuilder) handleRemoteFailure(in Incoming, m mail.Message, names []string) {
	open := slices.DeleteFunc(mut.Task.requestsTo(in.Peer), func(r OpenRequest) bool { return !slices.Contains(names, r.From) })
	if len(open) == 0 || mut.Task.State.Ended() {
		mut.logEvent("interswarm_message_ignored", "swarm "+in.Peer+" reports on what nobody had asked of it", map[string]any{"swarm": in.Peer})
		return
	}
	p := m.Payload
	if i := slices.IndexFunc(open, func(r OpenRequest) bool { return r.ID == p.ID }); i >= 0 {
		open = open[i : i+1]
	}
	waits := p.Subject == mail.SubjectBreakpointToolCall
	if waits && mut.handleRemoteCalls(in.Peer, open[0], p.Body) {
		return
	}
	for _, r := range open {
		if waits {
			mut.sendFailedAnswer(mail.Request, r.ID, r.From, p.Subject, p.Body, m.ID)
			continue
		}
		mut.failRequest(r, fmt.Sprintf("Swarm %q could not answer %s: [%s] %s", in.Peer, r.To, p.Subject, p.Body), m.ID)
	}
	mut.dropPeerCalls(in.Peer)
}

// failRequest closes a request that another swarm will not answer, and sends the
// reason.
func (mut *mutationBuilder) failRequest(r OpenRequest, why, cause string) {
	mut.closeRequest(r.ID)
	if r.Post > 0 {
		mut.collectRemoteAnswer(r, why, true)
		return
	}
	mut.sendFailedAnswer(mail.Request, r.ID, r.From, mail.SubjectRouterError, why, cause)
}
