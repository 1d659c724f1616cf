package swarm

// InMemory counts the tasks in memory, parked ones included.
func (r *Runtime) InMemory() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks) + len(r.parked)
}
