package swarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/swarm/slot"
)

// Cluster is the hosts that share a store. It is safe for concurrent use.
type Cluster interface {
	// Alive reports whether the other hosts still count with this one. One that is not takes no
	// messages.
	Alive() bool
	// Workers is how many hosts work on tasks. Changed returns a channel that is closed when a host has come or gone,
	// or slots have moved.
	Workers() int
	Changed() <-chan struct{}
	// OthersLoad is what the other hosts have shown last of a name of [Runtime.SharedLoads].
	OthersLoad(name string) int64
	// Claim lists the running tasks in slots that have become this host's.
	Claim(ctx context.Context, slots []slot.Slot) ([]RunningTask, error)
	// GrantSpend lets the host spend part of a tenant's budget of a day, at least a least amount.
	// If less is left it grants nothing, and returns what is left.
	GrantSpend(ctx context.Context, tenant string, day int64, least, bound Spend) (granted, rest Spend, err error)
	// CountRunning counts the tasks of tenants that run, at all hosts.
	CountRunning(ctx context.Context, tenants []string) (map[string]int, error)
	// Deaths are the suspects of all hosts, at the time when slots have become this host's. A turn
	// that it ends is none any more. The map is the caller's.
	Deaths() map[TurnID]Deaths
}

// ErrElsewhere means that another host works on a task, or none yet.
var ErrElsewhere = errors.New("another host works on the task")

// Elsewhere is [ErrElsewhere] with the task.
type Elsewhere struct{ Task TaskKey }

// Error names the task.
func (e *Elsewhere) Error() string { return fmt.Sprintf("task '%s': %v", e.Task.Task, ErrElsewhere) }

// Is makes it [ErrElsewhere].
func (*Elsewhere) Is(target error) bool { return target == ErrElsewhere }

// errMoved is the cause of turns that are ended because their slot goes to another host.
var errMoved = fmt.Errorf("the task moves to another host: %w", errShutdown)

// SlotOf returns the slot of a task.
func SlotOf(k TaskKey) slot.Slot { return slot.Of(k.Tenant, k.Swarm, k.Instance, k.Task) }

// share is what this host works on.
type share struct {
	cluster Cluster // nil for a host that works on everything
	// handover is how long turns may go on when their slot is given away.
	handover time.Duration

	mu    sync.RWMutex
	slots map[slot.Slot]bool
	// granting are held while a tenant's grant is made larger.
	granting map[string]*sync.Mutex
}

// grants returns what is held while a tenant's grant is made larger.
func (s *share) grants(tenant string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.granting[tenant]
	if one == nil {
		one = &sync.Mutex{}
		s.granting[tenant] = one
	}
	return one
}

// divide returns this host's part of a limit that all hosts hold together, rounded up.
func (s *share) divide(limit int) int {
	if s.cluster == nil {
		return limit
	}
	n := s.cluster.Workers()
	return (limit + n - 1) / n
}

// has reports whether the host works on a slot.
func (s *share) has(one slot.Slot) bool {
	if s.cluster == nil {
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.slots[one]
}

// hasTask reports whether the host works on a task.
func (s *share) hasTask(key TaskKey) bool { return s.cluster == nil || s.has(SlotOf(key)) }

// checkAlive refuses a new message while the other hosts may have taken the host's tasks. Turns go
// on: a fence decides what they write, and an outage of the server, in which no host is alive, must
// stop none.
func (s *share) checkAlive(key TaskKey) error {
	if s.cluster == nil || s.cluster.Alive() {
		return nil
	}
	return &Elsewhere{key}
}

// checkTask refuses a task that the host does not work on.
func (s *share) checkTask(key TaskKey) error {
	if s.hasTask(key) {
		return nil
	}
	return &Elsewhere{key}
}

func (s *share) set(slots []slot.Slot, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slots {
		if has {
			s.slots[one] = true
		} else {
			delete(s.slots, one)
		}
	}
}

func (s *share) isEmpty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.slots) == 0
}

// newTaskID makes the id of a task that this host works on.
func (r *Runtime) newTaskID(key InstanceKey) (string, error) {
	id := newID()
	if r.share.cluster == nil {
		return id, nil
	}
	for !r.share.hasTask(TaskKey{key, id}) {
		if r.share.isEmpty() {
			return "", &Elsewhere{TaskKey{key, id}}
		}
		id = newID()
	}
	return id, nil
}

// Gained takes up the tasks of slots that have become this host's. It returns when they are
// recovered, and what they have to deliver is known to the forwarder.
func (r *Runtime) Gained(ctx context.Context, slots []slot.Slot) error {
	found, err := r.share.cluster.Claim(ctx, slots)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	r.suspects.setDeaths(r.share.cluster.Deaths())
	keys := r.countTasks(found)
	r.share.set(slots, true)
	if err := r.recoverTasks(ctx, keys); err != nil {
		return err
	}
	return r.wakeOutboxes(ctx, slots)
}

// wakeOutboxes notifies the forwarder of what the tasks of slots have to deliver: those that are paused or have
// ended are not recovered.
func (r *Runtime) wakeOutboxes(ctx context.Context, slots []slot.Slot) error {
	list, err := r.Outboxes(ctx)
	if err != nil {
		return fmt.Errorf("find messages to deliver: %w", err)
	}
	for _, box := range list {
		if slices.Contains(slots, SlotOf(box.Task)) {
			r.forward.Wake(box)
		}
	}
	return nil
}

// Losing lays down the tasks of slots: no turn of them begins, and those that run may end within
// the handover. It returns when nothing of them is in memory.
func (r *Runtime) Losing(ctx context.Context, slots []slot.Slot) error {
	r.share.set(slots, false)
	lost := make(map[slot.Slot]bool, len(slots))
	for _, one := range slots {
		lost[one] = true
	}
	defer r.leaveSuspects(lost)
	defer r.forgetSlots(lost)
	stop := time.NewTimer(r.share.handover)
	defer stop.Stop()
	tick := time.NewTicker(stopPollInterval)
	defer tick.Stop()
	for {
		busy := false
		for _, t := range r.heldTasks(lost) {
			busy = r.layDown(t) || busy
			r.releaseTask(t)
		}
		if !busy {
			return nil
		}
		select {
		case <-tick.C:
		case <-stop.C:
			r.cancelTurns(lost)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// heldTasks adds a holder to the tasks of slots that are in memory, and lists them.
func (r *Runtime) heldTasks(slots map[slot.Slot]bool) (held []*activeTask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, t := range r.tasks {
		if slots[SlotOf(key)] {
			t.holders, t.holdGeneration = t.holders+1, t.holdGeneration+1
			held = append(held, t)
		}
	}
	slices.SortFunc(held, func(a, b *activeTask) int { return strings.Compare(a.key.String(), b.key.String()) })
	return held
}

// layDown drops a task without turns from memory, and reports whether it has any.
func (r *Runtime) layDown(t *activeTask) (busy bool) {
	t.commit.Lock()
	defer t.commit.Unlock()
	t.mu.Lock()
	busy = len(t.running) > 0
	if !busy {
		t.moved = true
	}
	t.mu.Unlock()
	if busy {
		return true
	}
	r.dropTask(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks[t.key] == t {
		delete(r.tasks, t.key) // a holder that remains has a task that is not there
	}
	return false
}

// cancelTurns ends the turns of slots. Their rows stay in the store, and the next host runs them
// again.
func (r *Runtime) cancelTurns(slots map[slot.Slot]bool) {
	for _, t := range r.heldTasks(slots) {
		t.mu.Lock()
		for _, rn := range t.running {
			rn.cancel(errMoved)
		}
		t.mu.Unlock()
		r.releaseTask(t)
	}
}

// forgetSlots drops what is counted of tasks that are not in memory.
func (r *Runtime) forgetSlots(slots map[slot.Slot]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.parked {
		if slots[SlotOf(key)] {
			r.dropParked(key)
			r.wakeups.Set(key, time.Time{})
		}
	}
	for key := range r.damaged {
		if slots[SlotOf(key)] {
			delete(r.damaged, key)
		}
	}
}

// checkMoved refuses a task whose slot was given away while it was held. The caller holds t.mu.
func (t *activeTask) checkMoved() error {
	if t.moved {
		return &Elsewhere{t.key}
	}
	return nil
}

// checkHere is checkMoved for a holder of t.commit: nothing of a task that was given away is
// written.
func (t *activeTask) checkHere() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkMoved()
}

// followHosts lets waiting turns look for a slot again when hosts come and go, until ctx ends: their tenants may
// have more turns than before.
func (r *Runtime) followHosts(ctx context.Context) {
	if r.share.cluster == nil {
		return
	}
	for {
		changed := r.share.cluster.Changed()
		r.slots.Recheck()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// End ends the runtime for a cause that concerns all of it: turns stop at once, and Run returns it.
func (r *Runtime) End(cause error) { r.endLifetime(cause) }
