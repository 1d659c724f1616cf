package swarm

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func inst(id string) InstanceKey { return InstanceKey{"default", "hive", "user:" + id} }

// An instance with many waiters gets no more turns than one with a single one.
func TestCPUIsSharedByInstance(t *testing.T) {
	c := newCPU(1)
	ctx := context.Background()
	if err := c.acquire(ctx, inst("a")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	wait := func(id string) {
		c.mu.Lock()
		n := len(c.waiting[inst(id)])
		c.mu.Unlock()
		wg.Go(func() {
			if err := c.acquire(ctx, inst(id)); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, id)
			mu.Unlock()
			c.release()
		})
		for {
			c.mu.Lock()
			now := len(c.waiting[inst(id)])
			c.mu.Unlock()
			if now > n {
				return
			}
		}
	}
	for range 5 {
		wait("a")
	}
	wait("b")
	c.release()
	wg.Wait()
	if order[1] != "b" {
		t.Errorf("order %q: b waited behind all of a", order)
	}
	if c.free != 1 || len(c.ring) != 0 || len(c.waiting) != 0 {
		t.Errorf("left over: %+v", c)
	}
}

// A waiter that gives up loses no token.
func TestCPUAbandon(t *testing.T) {
	c := newCPU(1)
	if err := c.acquire(context.Background(), inst("a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if err := c.acquire(ctx, inst("b")); err == nil {
				c.release()
			} else if !errors.Is(err, why) {
				t.Error(err)
			}
		})
	}
	wg.Go(c.release)
	wg.Go(func() { cancel(why) })
	wg.Wait()
	if c.free != 1 || len(c.ring) != 0 {
		t.Errorf("left over: %+v", c)
	}
}

// Instances take turns for slots, and the higher tier goes first.
func TestScheduleOrder(t *testing.T) {
	s := newSchedule(1)
	s.reserve = 0
	task := func(id, name string) *live { return newLive(TaskKey{inst(id), name}, nil) }
	s.push(task("a", "a1"), "x", 5)
	s.push(task("a", "a2"), "x", 5)
	s.push(task("a", "a3"), "x", 1)
	s.push(task("b", "b1"), "x", 5)
	var got []string
	for range 4 {
		r, ok := s.next(t.Context())
		if !ok {
			t.Fatal("no claim")
		}
		got = append(got, r.task.key.Task)
		if _, ok := s.take(); ok {
			t.Error("a second slot was given")
		}
		s.done(r.task.key.InstanceKey)
	}
	for i, want := range []string{"a3", "b1", "a1", "a2"} {
		if got[i] != want {
			t.Fatalf("order %q", got)
		}
	}
}

// An instance whose turns only wait leaves slots for others.
func TestScheduleShare(t *testing.T) {
	s := newSchedule(8)
	for i := range 8 {
		s.push(newLive(TaskKey{inst("a"), string(rune('0' + i))}, nil), "x", 5)
	}
	for i := range 2 {
		if _, ok := s.take(); !ok {
			t.Fatalf("claim %d of 2 refused", i)
		}
	}
	if _, ok := s.take(); ok {
		t.Error("one instance has more than a quarter of the slots")
	}
	s.push(newLive(TaskKey{inst("b"), "1"}, nil), "x", 5)
	if r, ok := s.take(); !ok || r.task.key.Instance != "user:b" {
		t.Errorf("another instance waits: %v, %v", r, ok)
	}
	s.done(inst("a"))
	if r, ok := s.take(); !ok || r.task.key.Instance != "user:a" {
		t.Errorf("the slot given back is not used: %v, %v", r, ok)
	}
}

// When all slots are taken by instances that wait, others still get a turn.
func TestScheduleReserve(t *testing.T) {
	s := newSchedule(4)
	push := func(id, name string) { s.push(newLive(TaskKey{inst(id), name}, nil), "x", 5) }
	for _, id := range []string{"a", "b", "c", "d"} {
		push(id, "1")
		push(id, "2")
		if _, ok := s.take(); !ok {
			t.Fatal("a free slot is refused")
		}
	}
	if r, ok := s.take(); ok {
		t.Errorf("%s got a second turn out of the reserve", r.task.key.Instance)
	}
	push("e", "1")
	if r, ok := s.take(); !ok || r.task.key.Instance != "user:e" {
		t.Errorf("a newcomer waits for those who wait: %v", ok)
	}
	for _, id := range []string{"f", "g", "h", "i"} {
		push(id, "1")
		s.take()
	}
	if s.slots != -4 {
		t.Errorf("the reserve has no end: %d slots", s.slots)
	}
}
