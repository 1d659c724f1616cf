package swarm

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func inst(id string) InstanceKey { return InstanceKey{"default", "hive", "user:" + id} }

// ticking is a clock that the test moves.
type ticking struct{ at time.Time }

func (c *ticking) now() time.Time       { return c.at }
func (c *ticking) move(d time.Duration) { c.at = c.at.Add(d) }

func equal(string) float64 { return 1 }

// An instance with many waiters gets no more turns than one with a single one.
func TestCPUIsSharedByInstance(t *testing.T) {
	clock := &ticking{time.Unix(1e9, 0)}
	c := newCPU(1, clock.now, equal)
	if c.ask(inst("a")) != nil {
		t.Fatal("a free token is refused")
	}
	waiting := map[string][]chan struct{}{}
	for _, id := range []string{"a", "a", "a", "a", "a", "b"} {
		waiting[id] = append(waiting[id], c.ask(inst(id)))
	}
	var order []string
	for at := "a"; len(order) < 6; {
		clock.move(time.Millisecond)
		c.release(inst(at))
		for id, list := range waiting {
			if len(list) > 0 && isClosed(list[0]) {
				order, waiting[id], at = append(order, id), list[1:], id
			}
		}
	}
	if order[0] != "b" {
		t.Errorf("order %q: b waited behind a", order)
	}
	c.release(inst("a"))
	atRest(t, c, 1)
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func atRest(t *testing.T, c *cpu, free int) {
	t.Helper()
	if c.free != free || c.tenants.Waiting() != 0 || c.tenants.Busy() != 0 {
		t.Errorf("left over: %d free, %d waiting, %d busy", c.free, c.tenants.Waiting(), c.tenants.Busy())
	}
}

// A waiter that gives up loses no token.
func TestCPUAbandon(t *testing.T) {
	c := newCPU(1, time.Now, equal)
	if err := c.acquire(context.Background(), inst("a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if err := c.acquire(ctx, inst("b")); err == nil {
				c.release(inst("b"))
			} else if !errors.Is(err, why) {
				t.Error(err)
			}
		})
	}
	wg.Go(func() { c.release(inst("a")) })
	wg.Go(func() { cancel(why) })
	wg.Wait()
	atRest(t, c, 1)
}

// Instances take turns for slots, and the higher tier goes first.
func TestScheduleOrder(t *testing.T) {
	s := newSchedule(1, nil)
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
		s.done(r)
	}
	for i, want := range []string{"a3", "b1", "a1", "a2"} {
		if got[i] != want {
			t.Fatalf("order %q", got)
		}
	}
}

// An instance whose turns only wait leaves slots for others.
func TestScheduleShare(t *testing.T) {
	s := newSchedule(8, nil)
	for i := range 8 {
		s.push(newLive(TaskKey{inst("a"), string(rune('0' + i))}, nil), "x", 5)
	}
	var first ready
	for i := range 2 {
		var ok bool
		if first, ok = s.take(); !ok {
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
	s.done(first)
	if r, ok := s.take(); !ok || r.task.key.Instance != "user:a" {
		t.Errorf("the slot given back is not used: %v, %v", r, ok)
	}
}

// When all slots are taken by turns that wait, others still get a turn. While the
// turns compute they do not: a slot will be free in a moment.
func TestScheduleReserve(t *testing.T) {
	s := newSchedule(4, nil)
	var running []ready
	take := func() (ready, bool) {
		r, ok := s.take()
		if ok {
			running = append(running, r)
		}
		return r, ok
	}
	push := func(id, name string) { s.push(newLive(TaskKey{inst(id), name}, nil), "x", 5) }
	for _, id := range []string{"a", "b", "c", "d"} {
		push(id, "1")
		push(id, "2")
		if _, ok := take(); !ok {
			t.Fatal("a free slot is refused")
		}
	}
	if r, ok := s.take(); ok {
		t.Errorf("%s got a second turn out of the reserve", r.task.key.Instance)
	}
	push("e", "1")
	if r, ok := take(); ok {
		t.Errorf("%s got a turn out of the reserve while all compute", r.task.key.Instance)
	}
	for _, r := range running {
		r.seat.wait(true)
	}
	if r, ok := take(); !ok || r.task.key.Instance != "user:e" {
		t.Errorf("a newcomer waits for those who wait: %v", ok)
	}
	for _, id := range []string{"f", "g", "h", "i"} {
		push(id, "1")
		if r, ok := take(); ok {
			r.seat.wait(true)
		}
	}
	if s.slots != -4 {
		t.Errorf("the reserve has no end: %d slots", s.slots)
	}
	for _, r := range running {
		s.done(r)
	}
	if s.slots != 4 || s.waiting != 0 {
		t.Errorf("at the end %d slots are free and %d turns wait", s.slots, s.waiting)
	}
}
