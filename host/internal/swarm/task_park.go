package swarm

// A running task that only waits (for timers, the time of a row or another swarm)
// leaves memory: its load stays counted and its wakeup set, and the next access loads
// it again. A task that an earlier host left and that was not accessed since is parked
// as well.

// isParkable reports whether nothing can happen in the task before its wakeup.
func (t *activeTask) isParkable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := len(t.delayed) > 0 || t.rec.waitsForRemote()
	if t.counted.running == 0 || !waits || len(t.running) > 0 || len(t.outbox) > 0 {
		return false
	}
	for _, q := range t.queue {
		if q.Len() > 0 {
			return false
		}
	}
	return true
}

// lastHolderMayPark reports whether the task only waits. It is called by the last
// holder beside the task itself, which holds r.mu and is about to release the task. For
// other holders it is false.
func (r *Runtime) lastHolderMayPark(t *activeTask) (waits bool) {
	for seen := t.holdGeneration - 1; t.holders == 2 && t.selfHeld && seen != t.holdGeneration; {
		seen = t.holdGeneration
		r.mu.Unlock() // activeTask.mu comes before Runtime.mu
		waits = t.isParkable()
		r.mu.Lock()
	}
	return waits
}

// parkTask drops a task from memory that is its own last holder. The caller holds r.mu,
// and no other goroutine has the task: it is as the last holder has left it.
func (r *Runtime) parkTask(t *activeTask) {
	r.parked[t.key] = t.counted
	t.holders, t.selfHeld = 0, false
	r.forgetTask(t)
}

// forgetTask drops a task without holders from memory. The caller holds r.mu. The
// channels of unanswered posts are closed, because the task is parked or paused and the
// next load does not know them.
func (r *Runtime) forgetTask(t *activeTask) {
	if r.tasks[t.key] == t {
		delete(r.tasks, t.key)
	}
	for _, waiting := range t.waiters {
		for _, ch := range waiting {
			close(ch) // the waiter looks for the answer in the store
		}
	}
}

// unparkTask restores the load of a task that was loaded. It reports whether the task was
// set aside before, so that nothing has counted, woken or claimed it. The caller holds
// t.mu.
func (r *Runtime) unparkTask(t *activeTask) (damaged bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, damaged = r.damaged[t.key]
	delete(r.damaged, t.key)
	counted, ok := r.parked[t.key]
	if !ok {
		return damaged
	}
	delete(r.parked, t.key)
	t.counted = counted
	t.holders, t.selfHeld = t.holders+counted.running, counted.running > 0
	return false
}
