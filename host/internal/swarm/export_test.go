package swarm

import (
	"context"
	"time"

	"skep/host/internal/swarm/slot"
)

// InMemory counts the tasks in memory, parked ones included.
func (r *Runtime) InMemory() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks) + len(r.parked)
}

// EraseBeforeLook erases a task that look has found and waits for.
func (r *Runtime) EraseBeforeLook(ctx context.Context, key TaskKey, look func() error) error {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	const step = 20 * time.Millisecond // for what look does until it waits
	looked := make(chan error, 1)
	t.mu.Lock()
	go func() { looked <- look() }()
	time.Sleep(step)
	t.commit.Lock()
	t.mu.Unlock()
	time.Sleep(step)
	r.dropTask(t)
	t.commit.Unlock()
	return <-looked
}

// MoveTurns ends the turns of all slots as if these went to other hosts.
func (r *Runtime) MoveTurns() {
	all := map[slot.Slot]bool{}
	for one := range slot.Count {
		all[one] = true
	}
	r.cancelTurns(all)
}
