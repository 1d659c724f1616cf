package swarm

// A task that runs but only waits, for timers, the time of a row or another swarm, is let go
// of: what it counts for its instance stays, with its alarm, and whoever asks for
// it loads it again. So is one that an earlier host left and nobody has asked for.

// waitsOnly reports whether nothing can happen in the task before its alarm.
func (t *live) waitsOnly() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := len(t.later) > 0 || t.rec.waitsAbroad()
	if t.counted.running == 0 || !waits || len(t.running) > 0 || len(t.letters) > 0 {
		return false
	}
	for _, q := range t.queue {
		if q.Len() > 0 {
			return false
		}
	}
	return true
}

// lastSees reports whether the task only waits, as seen by its last holder beside
// itself, who holds r.mu and is about to let go. For others it is false.
func (r *Runtime) lastSees(t *live) (waits bool) {
	for seen := t.taken - 1; t.refs == 2 && t.held && seen != t.taken; {
		seen = t.taken
		r.mu.Unlock() // the task's own lock comes before it
		waits = t.waitsOnly()
		r.mu.Lock()
	}
	return waits
}

// parkTask forgets a task that is its own last holder. The caller holds r.mu, and
// nobody else knows the task: it is as the last holder has left it.
func (r *Runtime) parkTask(t *live) {
	r.parked[t.key] = t.counted
	t.refs, t.held = 0, false
	r.forgetTask(t)
}

// forgetTask lets go of a task that nobody holds. The caller holds r.mu. Posts that
// have no answer yet, because the task is parked or paused, are told to look for
// theirs: whoever takes the task up next does not know them.
func (r *Runtime) forgetTask(t *live) {
	delete(r.tasks, t.key)
	for _, waiting := range t.waiters {
		for _, ch := range waiting {
			close(ch) // whoever waits looks for the answer in the store
		}
	}
}

// unpark gives a task that was loaded what was kept of it. The caller holds t.mu.
func (r *Runtime) unpark(t *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.damaged, t.key)
	counted, ok := r.parked[t.key]
	if !ok {
		return
	}
	delete(r.parked, t.key)
	t.counted = counted
	t.refs, t.held = t.refs+counted.running, counted.running > 0
}
