package swarm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"skep/spec/mail"
)

// An errand is a post to agents of other swarms. It goes out as requests in the name
// of the entrypoint, to which they can answer; the answers complete the task.

// Gathered is an answer to an errand whose other answers are not there yet.
type Gathered struct {
	Post int64 `json:"post"`
	// From is who was asked.
	From string `json:"from"`
	Text string `json:"text"`
	// Failed says that Text is why there is no answer.
	Failed bool `json:"failed,omitempty"`
}

// maxGathered bounds the answers to one post of several targets, which become one
// body with their names.
const maxGathered = MaxBody - 16<<10

// route decides who gets a post, before anything of it is kept. The caller holds
// t.commit.
func (r *Runtime) route(ctx context.Context, t *live, p *Post) (to audience, err error) {
	targets := p.To
	if len(targets) == 0 {
		name := p.Entrypoint
		if name == "" {
			name = t.def.Entrypoint
		}
		targets = []string{name}
	}
	if len(p.To) > maxTargets {
		return to, refuse(ErrInvalid, "the message has %d targets, at most %d", len(p.To), maxTargets)
	}
	for _, target := range targets {
		name, swarm, err := mail.ParseAddr(target)
		switch {
		case err != nil && len(p.To) > 0:
			return to, refuse(ErrInvalid, "target '%s': %v", target, err)
		case len(p.To) == 0, swarm == "", swarm == t.def.Name:
			if len(p.To) == 0 {
				name = target
			}
			to.add(name, "")
			err = t.enters(name)
		default:
			to.add(name, swarm)
			err = r.leaves(ctx, t, name, swarm)
		}
		if err != nil {
			return to, err
		}
	}
	return to, t.fits(p, to)
}

// fits checks a post against how many there may be of what it brings, and names
// the entrypoint that the task goes by.
func (t *live) fits(p *Post, to audience) error {
	asked := 0
	for _, party := range to.away {
		asked += len(party.names)
	}
	p.Entrypoint = t.def.Entrypoint
	if len(to.local) > 0 {
		p.Entrypoint = to.local[0]
	}
	switch {
	case p.Type != mail.Broadcast && asked+len(to.local) > 1:
		return refuse(ErrInvalid, "only a broadcast may have several targets")
	case asked > 0 && len(t.rec.Requests)+asked > maxOpenRequests:
		return refuse(ErrLimit, "task '%s' has %d open requests, at most %d", t.key.Task, len(t.rec.Requests), maxOpenRequests)
	}
	return nil
}

// enters says why a post cannot begin with an agent of the swarm.
func (t *live) enters(name string) error {
	agent, ok := t.def.agent(name)
	switch {
	case !ok:
		return refuse(ErrInvalid, "entrypoint '%s' is not an agent of swarm '%s'", name, t.def.Name)
	case !agent.Entrypoint:
		return refuse(ErrInvalid, "agent '%s' is not an entrypoint (enable_entrypoint is false)", name)
	}
	return nil
}

// leaves says why a post cannot go to another swarm's agent. Who posts may write to
// whom the entrypoint may write to, in whose name it goes.
func (r *Runtime) leaves(ctx context.Context, t *live, name, swarm string) error {
	target, speaker := mail.FormatAddr(name, swarm), t.def.Entrypoint
	agent, _ := t.def.agent(speaker)
	switch {
	case !t.def.Interswarm:
		return refuse(ErrInvalid, "swarm '%s' sends no mail to other swarms; set [swarm] enable_interswarm = true", t.def.Name)
	case name == mail.ReservedAll:
		return refuse(ErrInvalid, "target '%s' is no agent; name those of another swarm one by one", target)
	case !agent.Interswarm:
		return refuse(ErrInvalid, "entrypoint '%s' may not write to other swarms; set [agents.%s] enable_interswarm = true", speaker, speaker)
	}
	if err := r.forward.Check(ctx, t.key.InstanceKey, swarm); err != nil {
		return refuse(ErrNotFound, "cannot send to '%s': %v", target, err)
	}
	if !agent.mayWrite(t.def.Name, name, swarm) {
		return refuse(ErrInvalid, "entrypoint '%s' may not write to '%s'; add it to [agents.%s] comm_targets", speaker, target, speaker)
	}
	return nil
}

// dispatch sends a post to all who get it. It returns the number under which it is
// answered.
func (s *step) dispatch(p Post, to audience) int64 {
	last := len(to.local) - 1
	if len(to.away) > 0 {
		last = -1
	}
	var n int64
	for i, name := range to.local {
		row := s.postRow(p, name)
		row.Beside = i != last
		n = s.insert(row)
		if row.Beside {
			s.posts.added = append(s.posts.added, Pending{Row: n})
		}
	}
	if len(to.away) > 0 {
		n = s.number()
	}
	for _, party := range to.away {
		for _, name := range party.names {
			s.ask(p, n, name, party.swarm)
		}
	}
	return n
}

// ask sends a post to another swarm's agent, as a request or an interrupt, also when
// it is a broadcast: the one who posts waits for the answer.
func (s *step) ask(p Post, n int64, target, swarm string) {
	kind := mail.Request
	if p.Type == mail.Interrupt {
		kind = p.Type
	}
	m := compose(kind, envelope{
		task: s.Task.Key.Task, swarm: s.def.Name, id: newID(), payloadID: newID(), at: s.now,
		sender:     mail.Address{Type: mail.Agent, Name: s.def.Entrypoint},
		recipients: []mail.Address{{Type: mail.Agent, Name: target}},
		subject:    p.Subject, body: p.Body,
	})
	m.Payload.RecipientSwarms = []string{swarm}
	m.Payload.RoutingInfo = routing("remote_swarm", swarm)
	l := Letter{ID: m.ID, Peer: swarm, Message: m, Post: n, Trace: p.Trace}
	request, _ := l.opens()
	s.post(l)
	if s.Task.Grace {
		s.gather(request, "The task has used up its messages.", true)
		return
	}
	s.Task.Requests = append(s.Task.Requests, request)
}

// errands are the requests that posts have made.
func (t Task) errands() (list []OpenRequest) {
	for _, r := range t.Requests {
		if r.Post > 0 {
			list = append(list, r)
		}
	}
	return list
}

// hearAnswer takes the answer to a request that a response has closed, and reports
// whether it was a post's: then no agent gets it.
func (s *step) hearAnswer(peer string, r OpenRequest, m mail.Message) bool {
	if r.ID == "" {
		return false
	}
	if r.Post > 0 {
		s.newMessage(m, map[string]any{"recipient": r.From})
		s.gather(r, m.Payload.Body, false)
	}
	s.forgetCalls(peer)
	return r.Post > 0
}

// gather keeps the answer to a post's request, which is closed, or why there is none.
func (s *step) gather(r OpenRequest, text string, failed bool) {
	size, others := len(text), slices.ContainsFunc(s.Task.Requests, func(o OpenRequest) bool { return o.Post == r.Post })
	for _, g := range s.Task.Gathered {
		if g.Post == r.Post {
			size, others = size+len(g.Text), true
		}
	}
	if others && size > maxGathered {
		text = fmt.Sprintf("(an answer of %d bytes, which the task's log has)", len(text))
	}
	s.Task.Gathered = append(s.Task.Gathered, Gathered{r.Post, r.To, text, failed})
}

// finishErrands completes a running task for the posts whose answers are all there.
func (s *step) finishErrands() {
	for s.Task.State == StateRunning {
		i := slices.IndexFunc(s.Task.Gathered, func(g Gathered) bool {
			return !slices.ContainsFunc(s.Task.Requests, func(r OpenRequest) bool { return r.Post == g.Post })
		})
		if i < 0 {
			return
		}
		post := s.Task.Gathered[i].Post
		var mine []Gathered
		s.Task.Gathered = slices.DeleteFunc(s.Task.Gathered, func(g Gathered) bool {
			if g.Post == post {
				mine = append(mine, g)
			}
			return g.Post == post
		})
		s.handle(post)
		s.finishErrand(mine)
	}
}

// finishErrand ends the task with what those who were asked have said.
func (s *step) finishErrand(all []Gathered) {
	failed := !slices.ContainsFunc(all, func(g Gathered) bool { return !g.Failed })
	from, text := all[0].From, all[0].Text
	if len(all) > 1 {
		var parts []string
		for _, g := range all {
			said := g.Text
			if g.Failed {
				said = "ERROR: " + said
			}
			parts = append(parts, g.From+": "+said)
		}
		from, text = s.Task.Entrypoint, strings.Join(parts, "\n\n")
	}
	if failed {
		s.endBySystem(StateFailed, mail.SubjectRouterError, text)
		return
	}
	m := s.systemMessage(mail.BroadcastComplete, "", mail.SubjectTaskComplete, text)
	m.Payload.Sender = mail.Address{Type: mail.Agent, Name: from}
	if _, swarm, _ := mail.ParseAddr(from); swarm != "" {
		m.Payload.SenderSwarm = swarm
	}
	s.complete(from, m)
}
