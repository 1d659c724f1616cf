package scheduler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func inst(id string) Owner { return Owner{"default", "user:" + id} }

// ticking is a clock that the test moves.
type ticking struct{ at time.Time }

func (c *ticking) now() time.Time       { return c.at }
func (c *ticking) move(d time.Duration) { c.at = c.at.Add(d) }

func equal(string) float64 { return 1 }

// An instance with many waiters gets no more turns than one with a single one.
func TestCPUIsSharedByInstance(t *testing.T) {
	clock := &ticking{time.Unix(1e9, 0)}
	c := NewCPU(1, clock.now, equal)
	if c.request(inst("a")) != nil {
		t.Fatal("a free token is refused")
	}
	waiting := map[string][]chan struct{}{}
	for _, id := range []string{"a", "a", "a", "a", "a", "b"} {
		waiting[id] = append(waiting[id], c.request(inst(id)))
	}
	var order []string
	for at := "a"; len(order) < 6; {
		clock.move(time.Millisecond)
		c.Release(inst(at))
		for id, list := range waiting {
			if len(list) > 0 && isClosed(list[0]) {
				order, waiting[id], at = append(order, id), list[1:], id
			}
		}
	}
	if order[0] != "b" {
		t.Errorf("order %q: b waited behind a", order)
	}
	c.Release(inst("a"))
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

func atRest(t *testing.T, c *CPU, free int) {
	t.Helper()
	if c.free != free || c.tenants.Waiting() != 0 || c.tenants.Busy() != 0 {
		t.Errorf("left over: %d free, %d waiting, %d busy", c.free, c.tenants.Waiting(), c.tenants.Busy())
	}
}

// A waiter that gives up loses no token.
func TestCPUAbandon(t *testing.T) {
	c := NewCPU(1, time.Now, equal)
	if err := c.Acquire(context.Background(), inst("a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if err := c.Acquire(ctx, inst("b")); err == nil {
				c.Release(inst("b"))
			} else if !errors.Is(err, why) {
				t.Error(err)
			}
		})
	}
	wg.Go(func() { c.Release(inst("a")) })
	wg.Go(func() { cancel(why) })
	wg.Wait()
	atRest(t, c, 1)
}

// contended reports whether giving a token back would serve a waiter.
func contended(c *CPU) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tenants.Waiting() > 0
}
