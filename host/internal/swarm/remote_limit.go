package swarm

import (
	"strings"

	"skep/spec/mail"
)

// peerKey identifies the instances of one other swarm's key.
type peerKey struct {
	swarmKey
	// root is the instance without the mark of a separate runner.
	root string
}

// runnerSeparator separates a key's id from the mark of a separate runner.
const runnerSeparator = "/"

// peerKey returns the key to which an instance belongs; ok is false for an instance of
// a user.
func (k InstanceKey) peerKey() (g peerKey, ok bool) {
	root, ok := strings.CutPrefix(k.Instance, string(mail.RoleSwarm)+":")
	if i := strings.LastIndex(root, runnerSeparator); i >= 0 && len(root)-i == len(runnerSeparator)+32 {
		root = root[:i]
	}
	return peerKey{k.swarm(), root}, ok
}

// reservePeerTask counts one more running task of a swarm with a message's reservation, or
// refuses it. A message to a task that runs adds none.
func (r *Runtime) reservePeerTask(t *activeTask, in Incoming, part *reservation) error {
	most, key := t.def.Limits.PeerTasks, "[limits] peer_tasks"
	if in.Asks > 0 && (most <= 0 || in.Asks < most) {
		most, key = in.Asks, "[gateways."+in.gateway()+"] asks"
	}
	g, ok := t.key.peerKey()
	if !ok || most <= 0 || t.exists && (!t.rec.State.Ended() || !in.reopensTask(t.rec)) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if running := r.peerTasks[g] + r.othersLoad(g.loadName()); running >= most {
		return &Refusal{Kind: ErrLimit, Retry: retrySoon, Key: key, Text: countNoun(int64(running), "task") + " of swarm '" + in.Peer +
			"' run here, its limit; raise " + key + " or try later"}
	}
	r.countPeerTasks(g, 1)
	part.peer = &g
	return nil
}

// countPeerTasks adds to the tasks of a swarm. The caller holds mu.
func (r *Runtime) countPeerTasks(g peerKey, n int) {
	if r.peerTasks[g] += n; r.peerTasks[g] == 0 {
		delete(r.peerTasks, g)
	}
}
