package swarm

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"skep/spec/mail"
)

// local is the wrapper as a local message, with the agents who get it.
func (in Incoming) local(def *Definition) ([]string, mail.Message, error) {
	names, err := in.recipients(def)
	if err != nil {
		return nil, mail.Message{}, err
	}
	m, err := in.message(def.Name)
	return names, m, err
}

// recipients are the local agents that a wrapper names. None are needed for what
// the runtime itself handles.
func (in Incoming) recipients(def *Definition) ([]string, error) {
	var names []string
	for _, r := range in.Wrapper.Payload.Recipients {
		name, to, err := mail.ParseAddr(r.Name)
		if err != nil {
			return nil, refuse(ErrInvalid, "recipient '%s': %v", r.Name, err)
		}
		if to != "" && to != def.Name {
			continue
		}
		if name == mail.ReservedAll {
			names = append(names, def.open()...)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if mail.Reserved(in.Wrapper.Payload.Subject) {
		return names, nil
	}
	for _, name := range names {
		switch a, ok := def.agent(name); {
		case !ok:
			return nil, refuse(ErrNotFound, "there is no agent '%s' in swarm '%s'", name, def.Name)
		case !a.Interswarm:
			return nil, refuse(ErrNotFound, "agent '%s' takes no mail from other swarms (enable_interswarm is false)", name)
		}
	}
	if len(names) == 0 {
		return nil, refuse(ErrInvalid, "no recipient is an agent of swarm '%s'", def.Name)
	}
	return names, nil
}

// open returns the names of the agents that other swarms may write to.
func (d *Definition) open() (names []string) {
	for _, a := range d.Agents {
		if a.Interswarm {
			names = append(names, a.Name)
		}
	}
	return names
}

// message makes a local message of what came: the sender bears its swarm's name.
func (in Incoming) message(local string) (mail.Message, error) {
	w := in.Wrapper
	p := w.Payload
	if name, _, err := mail.ParseAddr(p.Sender.Name); err == nil && p.Sender.Type == mail.Agent {
		p.Sender.Name = mail.FormatAddr(name, in.Peer)
	}
	p.SenderSwarm, p.RecipientSwarms = in.Peer, []string{local}
	m := mail.Message{ID: w.MessageID, Timestamp: w.Timestamp, Type: w.Type, Payload: p}
	if !mail.ValidUUID(m.ID) {
		m.ID = newID()
	}
	if err := m.Validate(); err != nil {
		return mail.Message{}, refuse(ErrInvalid, "parameter 'message' is malformed: %v", err)
	}
	return m, nil
}

// arrive does what a wrapper asks for.
func (s *step) arrive(in Incoming, o runner, m mail.Message, names []string) {
	if !s.live.exists {
		s.createForeign(in, o)
	}
	sender := m.Payload.Sender
	if sender.Type == mail.Agent {
		name, _, _ := mail.ParseAddr(sender.Name)
		s.Task.hearOf(in.Peer, name)
	}
	s.Task.name(s.def.Name, in.Peer, in.Wrapper.TaskContributors)
	s.event("interswarm_message_received", "received interswarm message from swarm "+in.Peer, map[string]any{
		"message_id": in.Wrapper.MessageID, "swarm": in.Peer,
	})
	switch {
	case m.Payload.Subject == mail.SubjectTaskComplete:
		s.hearEnd(in, m)
	case in.answersCalls():
		s.hearResults(in)
	case mail.Reserved(m.Payload.Subject):
		s.hearTrouble(in, m, names)
	default:
		s.deliver(in, m, names)
	}
}

// createForeign begins a task that belongs to another swarm.
func (s *step) createForeign(in Incoming, o runner) {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	s.Task = Task{
		Key: s.live.key, Owner: in.Wrapper.TaskOwner, Caller: in.Peer, Hops: in.Hops, Entrypoint: s.def.Entrypoint,
		State: StateRunning, Created: s.now, Updated: s.now, Nonce: nonce, Definition: s.def.Digest,
		MaxSteps: s.def.Limits.TaskMessages, Timeout: s.def.Limits.TaskTimeout, History: map[string]int64{},
		Contributors: []string{in.Wrapper.TaskOwner},
	}
	s.Task.name(s.def.Name, in.Peer, in.Wrapper.TaskContributors)
	s.Task.Contributors = append(s.Task.Contributors, o.owner.String())
	s.rewind()
}

// rewind gives the task its whole time again.
func (s *step) rewind() {
	s.Task.Deadline = time.Time{}
	if s.Task.Timeout > 0 {
		s.Task.Deadline = s.now.Add(s.Task.Timeout)
	}
}

// deliver queues a message of another swarm's agent. What comes for an ended task
// makes it run again, is refused, or is stashed.
func (s *step) deliver(in Incoming, m mail.Message, names []string) {
	asks := m.Type == mail.Request || m.Type == mail.Interrupt
	switch {
	case !s.Task.State.Ended():
	case in.reopens(s.Task):
		s.reopen()
		s.rewind()
	case asks:
		s.tooLate(m)
		return
	}
	sender := m.Payload.Sender.Name
	for _, name := range names {
		switch m.Type {
		case mail.Response:
			if s.hearAnswer(in.Peer, s.closeAsked(m.Payload.ID, name, sender), m) {
				continue
			}
		case mail.Request, mail.Interrupt:
			if len(s.Task.Requests) < maxOpenRequests {
				s.Task.Requests = append(s.Task.Requests, OpenRequest{ID: m.Payload.ID, From: sender, To: name})
			}
		}
		row := in.row(m, name)
		row.Late = s.Task.State.Ended()
		s.insert(row)
	}
}

// row is a message for an agent. That of another swarm's system is mail like any
// other here.
func (in Incoming) row(m mail.Message, agent string) Row {
	ranked := m
	ranked.Payload.Sender.Type = mail.Agent
	return Row{
		Agent: agent, Tier: mail.Tier(ranked), Message: m, Hops: in.Hops, Trace: in.Trace, Cause: m.ID,
		Origin: Origin{Door: doorPeer, Realm: in.Principal.Tenant, Principal: string(in.Principal.Role) + ":" + in.Principal.ID},
	}
}

// closeAsked closes the request that a response answers: the one it names, else
// the oldest that the recipient has made of the sender (G-19). It returns the
// request, a zero one when there is none.
func (s *step) closeAsked(id, agent, sender string) (closed OpenRequest) {
	match := func(r OpenRequest) bool { return r.From == agent && r.To == sender }
	i := slices.IndexFunc(s.Task.Requests, func(r OpenRequest) bool { return match(r) && r.ID == id })
	if i < 0 {
		i = slices.IndexFunc(s.Task.Requests, match)
	}
	if i >= 0 {
		closed = s.Task.Requests[i]
		s.Task.Requests = slices.Delete(s.Task.Requests, i, i+1)
	}
	return closed
}

// hearEnd handles another swarm's task_complete (contract 6.5): the owner's, or
// the caller's, ends the task; a contributor's answers what was asked of it; any
// other counts for nothing.
func (s *step) hearEnd(in Incoming, m mail.Message) {
	if s.Task.foreign() && (in.Peer == swarmOf(s.Task.Owner) || in.Peer == s.Task.Caller) {
		s.dismiss(in, m)
		return
	}
	open := s.Task.asking(in.Peer)
	if len(open) == 0 || s.Task.State.Ended() {
		s.event("interswarm_message_ignored", "swarm "+in.Peer+" completed what nobody had asked of it", map[string]any{"swarm": in.Peer})
		return
	}
	m.Payload.Subject = mail.SubjectInterswarmTaskComplete
	s.answerAskers(in, m, open)
	s.forgetCalls(in.Peer)
}

// dismiss ends a task at the wish of the swarm that it is done for. No turn runs
// for it.
func (s *step) dismiss(in Incoming, m mail.Message) {
	if s.Task.State.Ended() {
		return
	}
	s.newMessage(m, map[string]any{"caller": m.Payload.Sender.Name, "completion": true})
	for _, a := range s.def.Agents {
		s.rememberMessage(a.Name, 0, m)
	}
	s.announce(ending{subject: mail.SubjectTaskComplete, body: m.Payload.Body, told: in.Peer})
	s.Task.State, s.Task.Grace, s.Task.Requests, s.Task.PeerAsks = StateCompleted, false, nil, nil
	s.cancelAsks()
	s.stashRest()
	s.answer("task_complete", Answer{
		State: StateCompleted, Subject: mail.SubjectTaskComplete, Body: m.Payload.Body, Caller: m.Payload.Sender.Name,
	}, answersAll)
}

// answerAskers gives every agent that waits for the swarm its message, and closes
// what it waits for.
func (s *step) answerAskers(in Incoming, m mail.Message, open []OpenRequest) {
	var told []string
	for _, r := range open {
		s.closeRequest(r.ID)
		if r.Post > 0 {
			s.newMessage(m, map[string]any{"recipient": r.From})
			s.gather(r, m.Payload.Body, false)
			continue
		}
		if slices.Contains(told, r.From) {
			continue
		}
		told = append(told, r.From)
		to := r.From
		if _, ok := s.def.agent(to); !ok {
			to = s.Task.Entrypoint
		}
		s.insert(in.row(m, to))
	}
}

// hearTrouble handles what the system of another swarm says instead of an answer.
// It counts only for what was asked of that swarm. A call that waits for people
// there leaves the request open, and an agent only hears of it when the report
// cannot be kept.
func (s *step) hearTrouble(in Incoming, m mail.Message, names []string) {
	open := slices.DeleteFunc(s.Task.asking(in.Peer), func(r OpenRequest) bool { return !slices.Contains(names, r.From) })
	if len(open) == 0 || s.Task.State.Ended() {
		s.event("interswarm_message_ignored", "swarm "+in.Peer+" reports on what nobody had asked of it", map[string]any{"swarm": in.Peer})
		return
	}
	p := m.Payload
	if i := slices.IndexFunc(open, func(r OpenRequest) bool { return r.ID == p.ID }); i >= 0 {
		open = open[i : i+1]
	}
	waits := p.Subject == mail.SubjectBreakpointToolCall
	if waits && s.hearCalls(in.Peer, open[0], p.Body) {
		return
	}
	for _, r := range open {
		if waits {
			s.sendSystem(mail.Response, r.From, p.Subject, p.Body, m.ID)
			continue
		}
		s.broken(r, fmt.Sprintf("Swarm %q could not answer %s: [%s] %s", in.Peer, r.To, p.Subject, p.Body), m.ID)
	}
	s.forgetCalls(in.Peer)
}

// broken closes a request that another swarm will not answer, and tells why.
func (s *step) broken(r OpenRequest, why, cause string) {
	s.closeRequest(r.ID)
	if r.Post > 0 {
		s.gather(r, why, true)
		return
	}
	s.sendSystem(mail.Response, r.From, mail.SubjectRouterError, why, cause)
}
