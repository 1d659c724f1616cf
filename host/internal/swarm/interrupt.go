package swarm

import "skep/spec/mail"

// Interrupted returns a channel that is closed when the turn should make room
// for an interrupt: ops that wait and all later ones then answer CANCELLED, and
// the executor gives the turn a short grace to end. What the turn has staged is
// committed if it ends well. In a swarm that does not preempt it stays open.
func (t *Turn) Interrupted() <-chan struct{} { return t.run.interrupted }

// preempt tells turns under way that an interrupt has come for their agent. The
// caller holds t.mu.
func (t *live) preempt(rows []Row) {
	if !t.def.Preempt {
		return
	}
	for _, row := range rows {
		rn := t.running[row.Agent]
		if rn == nil || rn.preempted || row.Stash || row.Message.Type != mail.Interrupt {
			continue
		}
		rn.preempted = true
		close(rn.interrupted)
	}
}
