package swarm

import (
	"slices"
	"strings"

	"skep/spec/mail"
)

// TaskPeer is another swarm that has to do with a task.
type TaskPeer struct {
	Swarm string `json:"swarm"`
	// Agent is the agent there that was last written to or heard of, without its
	// swarm.
	Agent string `json:"agent"`
	// Named counts the contributors that the swarm has made known.
	Named int `json:"named,omitempty"`
}

// Bounds of what peers may add to a task's record: contributors in all, those that
// one swarm names for which this one does not work, and swarms that were only heard
// of.
const (
	maxContributors = 256
	maxNamed        = 16
	maxPeers        = 64
)

// foreign reports whether the task belongs to another swarm, whose work this one
// contributes to.
func (t Task) foreign() bool { return t.Caller != "" }

// abroad reports whether an address is that of another swarm's agent: those of
// this swarm are kept without its name.
func abroad(address string) bool { return strings.Contains(address, "@") }

// swarmOf returns the swarm in an owner string, empty when it is none.
func swarmOf(owner string) string {
	o, err := mail.ParseForeignOwner(owner)
	if err != nil {
		return ""
	}
	return o.Swarm
}

// contributes reports whether an instance of a swarm is among those that work on
// the task, and not only by what another contributor says.
func (t Task) contributes(swarm string) bool {
	return slices.ContainsFunc(t.Contributors, func(c string) bool { return swarmOf(c) == swarm && !t.hearsay(c) })
}

func (t Task) hearsay(c string) bool { return slices.Contains(t.Hearsay, c) }

// vouched are the contributors that other swarms are told of: who only heard of one
// must not vouch for it.
func (t Task) vouched() []string {
	return slices.DeleteFunc(slices.Clone(t.Contributors), t.hearsay)
}

// knows reports whether the task has to do with a swarm: it works on it, or was
// written to.
func (t Task) knows(swarm string) bool {
	_, ok := t.peer(swarm)
	return ok || t.contributes(swarm)
}

func (t Task) peer(swarm string) (TaskPeer, bool) {
	i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm })
	if i < 0 {
		return TaskPeer{}, false
	}
	return t.Peers[i], true
}

// meet remembers which agent of a swarm the task has last had to do with.
func (t *Task) meet(swarm, agent string) {
	if i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm }); i >= 0 {
		t.Peers[i].Agent = agent
		return
	}
	t.Peers = append(t.Peers, TaskPeer{Swarm: swarm, Agent: agent})
}

// hearOf does so for a swarm that has written. Those that this one writes to have no
// bound: each is told of the end.
func (t *Task) hearOf(swarm, agent string) {
	if _, ok := t.peer(swarm); ok || len(t.Peers) < maxPeers {
		t.meet(swarm, agent)
	}
}

// asked returns the requests of a swarm's agents that have no answer yet.
func (t Task) asked(swarm string) (open []OpenRequest) {
	for _, r := range t.Requests {
		if _, of, _ := mail.ParseAddr(r.From); of != "" && of == swarm {
			open = append(open, r)
		}
	}
	return open
}

// asking returns the requests of local agents that a swarm's have not answered.
func (t Task) asking(swarm string) (open []OpenRequest) {
	for _, r := range t.Requests {
		if _, of, _ := mail.ParseAddr(r.To); of != "" && of == swarm {
			open = append(open, r)
		}
	}
	return open
}

// waitsAbroad reports whether another swarm may still make the task go on. One
// that belongs to another swarm, and owes it no answer, waits for what comes.
func (t Task) waitsAbroad() bool {
	if t.Grace {
		return false // what comes goes to the stash
	}
	owes := false
	for _, r := range t.Requests {
		if abroad(r.To) {
			return true
		}
		owes = owes || abroad(r.From)
	}
	return t.foreign() && !owes
}
