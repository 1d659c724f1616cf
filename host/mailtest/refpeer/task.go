package refpeer

import (
	"slices"
	"strings"
)

// Task names a task of an instance, which is as in "swarm:hive" or "user:u9".
type Task struct{ Instance, ID string }

// Mail is a message as an agent gets it.
type Mail struct {
	Task Task
	// Agent is who gets it, From who has sent it.
	Agent, From         string
	Kind, Subject, Body string
	// ID is the request's, response's or broadcast's.
	ID string
}

// record is what the runtime knows of a task.
type record struct {
	owner        string
	contributors []string
	// remote are the swarms that were written to; only these hear of the end.
	remote []string
	done   bool
}

// Begin makes a task of a user.
func (p *Peer) Begin(user, id string) Task {
	t := Task{"user:" + user, id}
	owner := p.ownerOf(t)
	p.bind(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks[t] = &record{owner: owner, contributors: []string{owner}}
	return t
}

// Contributors are a task's, nil if there is none.
func (p *Peer) Contributors(t Task) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.tasks[t]; r != nil {
		return slices.Clone(r.contributors)
	}
	return nil
}

func (p *Peer) ownerOf(t Task) string { return t.Instance + "@" + p.opt.Name }

// swarmOf is the swarm part of an owner string or an address: the reference splits
// at the first @ and drops what follows a second.
func swarmOf(text string) string {
	parts := strings.Split(text, "@")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}
