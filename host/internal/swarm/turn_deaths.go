package swarm

import (
	"fmt"

	"skep/host/internal/swarm/slot"
)

// Deaths are the deaths of hosts at which a turn was computing.
type Deaths struct {
	// Here counts deaths of this host, Elsewhere of others that share its store.
	Here, Elsewhere int
}

// convict reports whether a turn is not run again: it has taken down this host and another one, or
// any of them again and again. At the first death all that computed are suspects, and one of them
// is to blame at most.
func (d Deaths) convict() bool {
	return d.Here > 0 && d.Elsewhere > 0 || d.count() > maxCrashCount
}

func (d Deaths) count() int { return d.Here + d.Elsewhere }

// String says how many hosts died.
func (d Deaths) String() string {
	if d.Elsewhere > 0 {
		return fmt.Sprintf("%d deaths of hosts", d.count())
	}
	return fmt.Sprintf("%d deaths of the host", d.count())
}

// setDeaths replaces the suspects by what all hosts that share the store have seen. It keeps the
// map.
func (gate *suspectGate) setDeaths(found map[TurnID]Deaths) {
	gate.mu.Lock()
	defer gate.mu.Unlock()
	gate.deaths = found
}

// leaveSuspects drops the suspects of slots that go to another host, and goes on with the next one.
func (r *Runtime) leaveSuspects(slots map[slot.Slot]bool) {
	gate := r.suspects
	gate.mu.Lock()
	for id, one := range gate.waiting {
		if slots[SlotOf(one.task)] {
			delete(gate.waiting, id)
		}
	}
	active := gate.active
	gate.mu.Unlock()
	if active != nil && slots[SlotOf(active.task)] {
		gate.deactivate(active.id)
	}
	r.runNextSuspect()
}
