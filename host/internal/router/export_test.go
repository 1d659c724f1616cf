package router

// Lanes is how many lanes to a peer are open.
func (r *Router) Lanes(peer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lines[peer]; l != nil {
		return l.active
	}
	return 0
}

// Resting is how many outboxes have answers to a peer that rest.
func (r *Router) Resting(peer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lines[peer]; l != nil {
		return len(l.rests.of)
	}
	return 0
}
