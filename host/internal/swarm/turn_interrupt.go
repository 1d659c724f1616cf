package swarm

import "skep/spec/mail"

// Interrupted returns a channel that is closed when the turn should make room for an
// interrupt: waiting and later ops then return CANCELLED, and the executor gives the
// turn a short grace to end. The staged calls are committed if the turn ends well. In a
// swarm that does not preempt it stays open.
func (t *Turn) Interrupted() <-chan struct{} { return t.run.interrupted }

// preemptTurns interrupts the running turns of agents that get an interrupt. The caller
// holds t.mu.
func (t *activeTask) preemptTurns(rows []Row) {
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
