package refpeer

import (
	"fmt"
	"slices"
	"strings"
)

// deliver puts a message into a task, and returns it for each agent that gets it.
// The runtime does not see the route: a message whose contributors have the
// instance continues a task, any other begins one.
func (p *Peer) deliver(t Task, w wrapper) (got []Mail, err error) {
	known := slices.Contains(w.Contributors, p.ownerOf(t))
	if w.TargetSwarm != p.opt.Name {
		return nil, fmt.Errorf("message is for swarm '%s'", w.TargetSwarm)
	}
	agents, err := p.recipients(w)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.tasks[t]
	switch {
	case !known && r != nil:
		return nil, fmt.Errorf("a task with ID '%s' already exists in swarm memory", t.ID)
	case known && r == nil:
		return nil, fmt.Errorf("a task with ID '%s' does not exist in swarm memory", t.ID)
	case known && r.owner != w.Owner:
		return nil, fmt.Errorf("task owner mismatch: '%s'", w.Owner)
	case r == nil:
		r = &record{owner: w.Owner}
		p.tasks[t] = r
	}
	r.contributors = slices.Clone(w.Contributors) // replaced, whatever was known
	if r.done && w.Payload.Subject == taskComplete {
		return nil, nil // swallowed
	}
	for _, agent := range agents {
		got = append(got, Mail{
			Task: t, Agent: agent, From: w.Payload.Sender.Address, Kind: w.Kind, Subject: w.Payload.Subject, Body: w.Payload.Body,
			ID: w.Payload.RequestID + w.Payload.BroadcastID,
		})
	}
	return got, nil
}

// recipients are the agents that get a message. Only a name with this swarm's is
// looked at: others that do not exist vanish, a bare "all" is everybody.
func (p *Peer) recipients(w wrapper) (agents []string, err error) {
	all := w.Payload.Recipients
	if w.Payload.Recipient.Address != "" {
		all = append(all, w.Payload.Recipient)
	}
	for _, to := range all {
		name, _, qualified := strings.Cut(to.Address, "@")
		known := slices.Contains(p.opt.Agents, name)
		switch {
		case swarmOf(to.Address) == p.opt.Name && !known:
			return nil, fmt.Errorf("unknown agent '%s'", name)
		case !qualified && name == "all":
			agents = append(agents, p.opt.Agents...)
		case known && (!qualified || swarmOf(to.Address) == p.opt.Name):
			agents = append(agents, name)
		}
	}
	return agents, nil
}
