package router

// Workers returns the number of a peer's workers.
func (r *Router) Workers(peer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.queues[peer]; l != nil {
		return l.active
	}
	return 0
}

// Deferred is how many outboxes have answers to a peer that rest.
func (r *Router) Deferred(peer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.queues[peer]; l != nil {
		return len(l.deferred.messages)
	}
	return 0
}
