package swarm

import (
	"strings"

	"skep/spec/mail"
)

// guests are the instances of one other swarm's key.
type guests struct {
	swarmKey
	// root is the name of the instance that its tasks are in, as a rule.
	root string
}

// apartMark stands between a key's id and what tells an instance of its own by.
const apartMark = "/"

// guests returns whose tasks an instance has, ok being false for users'.
func (k InstanceKey) guests() (g guests, ok bool) {
	root, ok := strings.CutPrefix(k.Instance, string(mail.RoleSwarm)+":")
	if i := strings.LastIndex(root, apartMark); i >= 0 && len(root)-i == len(apartMark)+32 {
		root = root[:i]
	}
	return guests{k.swarm(), root}, ok
}

// guestRoom says why a swarm may not have one more task under way here. Wrappers
// that come at once may each take the last place.
func (r *Runtime) guestRoom(t *live, in Incoming) error {
	most := t.def.Limits.PeerTasks
	g, ok := t.key.guests()
	if !ok || most <= 0 || t.exists && (!t.rec.State.Ended() || !in.reopens(t.rec)) {
		return nil
	}
	r.mu.Lock()
	running := r.guests[g]
	r.mu.Unlock()
	if running < most {
		return nil
	}
	return &Refusal{Kind: ErrLimit, Retry: retrySoon, Text: counted(int64(running), "task") + " of swarm '" + in.Peer +
		"' run here, its limit; raise [limits] peer_tasks or try later"}
}
