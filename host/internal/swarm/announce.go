package swarm

import (
	"slices"

	"skep/spec/mail"
)

// ending is how a task ends, in the words of its last message.
type ending struct {
	// by is the agent that completed it, empty for the system.
	by            string
	subject, body string
	// told is the swarm that ended it and need not be told.
	told string
}

// announce tells other swarms that the task has ended here: those that were
// brought in are dismissed, and the one that called is answered.
// Open requests must still be there.
func (s *step) announce(e ending) {
	for _, p := range slices.Clone(s.Task.Peers) {
		switch {
		case p.Swarm == e.told, !s.Task.contributes(p.Swarm) && !s.posted(p.Swarm):
		case p.Swarm != s.Task.Caller:
			s.notify(p, e.by, "", mail.SubjectTaskComplete, e.body)
		case e.by != "":
			s.answerCaller(p, e)
		default:
			s.failCaller(e.subject, e.body, false)
		}
	}
}

// posted reports whether letters for a swarm are on their way, or will be with this
// step.
func (s *step) posted(swarm string) bool {
	forIt := func(l Letter) bool { return l.Peer == swarm && l.Dead == nil }
	return slices.ContainsFunc(s.live.letters, forIt) || slices.ContainsFunc(s.Letters, forIt)
}

// answerCaller sends the finish message to whoever asked last.
func (s *step) answerCaller(p TaskPeer, e ending) {
	id := ""
	if open := s.Task.asked(p.Swarm); len(open) > 0 {
		last := open[len(open)-1]
		id = last.ID
		p.Agent, _, _ = mail.ParseAddr(last.From)
	}
	s.notify(p, e.by, id, mail.SubjectTaskComplete, e.body)
}

// failCaller tells every agent of the calling swarm that waits for an answer what
// the system has to say instead. With open their requests stay open.
func (s *step) failCaller(subject, body string, open bool) {
	told := map[string]bool{}
	for _, r := range s.Task.asked(s.Task.Caller) {
		if !told[r.From] {
			s.replyAbroad(r, subject, body)
		}
		told[r.From] = true
		if !open {
			s.closeRequest(r.ID)
		}
	}
}

// failAbroad tells another swarm's agent that the turn has failed which its
// message was for.
func (s *step) failAbroad(m mail.Message, text string) {
	open := s.Task.Requests
	i := slices.IndexFunc(open, func(r OpenRequest) bool { return r.ID == m.Payload.ID && r.From == m.Payload.Sender.Name })
	if i >= 0 {
		s.replyAbroad(open[i], mail.SubjectAgentError, text)
		s.closeRequest(m.Payload.ID)
	}
}

// replyAbroad answers a request of another swarm's agent in the system's name.
func (s *step) replyAbroad(r OpenRequest, subject, body string) {
	name, peer, err := mail.ParseAddr(r.From)
	if err != nil {
		return
	}
	s.notify(TaskPeer{Swarm: peer, Agent: name}, "", r.ID, subject, body)
}

// notify posts a response that no turn has sent. An empty by is the system's, an
// empty id a fresh one.
func (s *step) notify(to TaskPeer, by, id, subject, body string) {
	m := s.systemMessage(mail.Response, mail.FormatAddr(to.Agent, to.Swarm), subject, body)
	if by != "" {
		m.Payload.Sender = mail.Address{Type: mail.Agent, Name: by}
	}
	if id != "" {
		m.Payload.ID = id
	}
	m.Payload.RecipientSwarms = []string{to.Swarm}
	m.Payload.RoutingInfo = routing("origin_swarm", s.def.Name, "remote_swarm", to.Swarm)
	s.post(Letter{ID: m.ID, Peer: to.Swarm, Message: m, Notice: true})
}
