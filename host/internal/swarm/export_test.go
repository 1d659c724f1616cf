package swarm

import "skep/host/internal/swarm/slot"

// InMemory counts the tasks in memory, parked ones included.
func (r *Runtime) InMemory() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks) + len(r.parked)
}

// MoveTurns ends the turns of all slots as if these went to other hosts.
func (r *Runtime) MoveTurns() {
	all := map[slot.Slot]bool{}
	for one := range slot.Count {
		all[one] = true
	}
	r.cancelTurns(all)
}
