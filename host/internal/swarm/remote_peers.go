package swarm

import (
	"slices"
	"strings"

	"skep/spec/mail"
)

// TaskPeer is another swarm that takes part in a task.
type TaskPeer struct {
	Swarm string `json:"swarm"`
	// Agent is the agent there that was last written to or heard from, without its
	// swarm.
	Agent string `json:"agent"`
	// Named counts the contributors that the swarm has named.
	Named int `json:"named,omitempty"`
}

// Bounds of what peers may add to a task's record: all contributors, contributors named
// by one swarm for which this one does not work, and peers that have only written.
const (
	maxContributors = 256
	maxNamed        = 16
	maxPeers        = 64
)

// isForeign reports whether the task belongs to another swarm.
func (t Task) isForeign() bool { return t.Caller != "" }

// isRemote reports whether an address is an agent of another swarm. Local agents are
// recorded without a swarm.
func isRemote(address string) bool { return strings.Contains(address, "@") }

// ownerSwarm returns the swarm in an owner string, empty for a malformed one.
func ownerSwarm(owner string) string {
	o, err := mail.ParseForeignOwner(owner)
	if err != nil {
		return ""
	}
	return o.Swarm
}

// hasContributor reports whether an instance of a swarm is a confirmed contributor.
func (t Task) hasContributor(swarm string) bool {
	return slices.ContainsFunc(t.Contributors, func(c string) bool { return ownerSwarm(c) == swarm && !t.isUnconfirmed(c) })
}

func (t Task) isUnconfirmed(c string) bool { return slices.Contains(t.Unconfirmed, c) }

// confirmedContributors are the contributors that other swarms are sent: an unconfirmed
// one must not spread.
func (t Task) confirmedContributors() []string {
	return slices.DeleteFunc(slices.Clone(t.Contributors), t.isUnconfirmed)
}

// involves reports whether a swarm takes part in the task: as a contributor, or because
// it was written to.
func (t Task) involves(swarm string) bool {
	_, ok := t.findPeer(swarm)
	return ok || t.hasContributor(swarm)
}

func (t Task) findPeer(swarm string) (TaskPeer, bool) {
	i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm })
	if i < 0 {
		return TaskPeer{}, false
	}
	return t.Peers[i], true
}

// recordPeer records the agent of a swarm that the task last wrote to or heard from.
func (t *Task) recordPeer(swarm, agent string) {
	if i := slices.IndexFunc(t.Peers, func(p TaskPeer) bool { return p.Swarm == swarm }); i >= 0 {
		t.Peers[i].Agent = agent
		return
	}
	t.Peers = append(t.Peers, TaskPeer{Swarm: swarm, Agent: agent})
}

// recordIncomingPeer records the agent of a swarm that has written, within the bound on
// peers. Peers that this swarm writes to have no bound, because each is notified of the
// end.
func (t *Task) recordIncomingPeer(swarm, agent string) {
	if _, ok := t.findPeer(swarm); ok || len(t.Peers) < maxPeers {
		t.recordPeer(swarm, agent)
	}
}

// requestsFrom returns the open requests of a swarm's agents.
func (t Task) requestsFrom(swarm string) (open []OpenRequest) {
	for _, r := range t.Requests {
		if _, of, _ := mail.ParseAddr(r.From); of != "" && of == swarm {
			open = append(open, r)
		}
	}
	return open
}

// requestsTo returns the open requests of local agents to a swarm's.
func (t Task) requestsTo(swarm string) (open []OpenRequest) {
	for _, r := range t.Requests {
		if _, of, _ := mail.ParseAddr(r.To); of != "" && of == swarm {
			open = append(open, r)
		}
	}
	return open
}

// waitsForRemote reports whether another swarm may still make the task progress: it
// owes an answer, or it owns the task and is owed none.
func (t Task) waitsForRemote() bool {
	if t.Grace {
		return false // incoming messages go to the stash
	}
	owes := false
	for _, r := range t.Requests {
		if isRemote(r.To) {
			return true
		}
		owes = owes || isRemote(r.From)
	}
	return t.isForeign() && !owes
}
