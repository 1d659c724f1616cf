package auth

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// ticker is a clock that the test moves.
type ticker struct {
	mu sync.Mutex
	at time.Time
}

func (c *ticker) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *ticker) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func take(l *Limiter, caller string, n int) (taken int, wait time.Duration) {
	for range n {
		w, ok := l.Allow(caller)
		if !ok {
			return taken, w
		}
		taken++
	}
	return taken, 0
}

func TestLimiter_S21(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	l := NewLimiter(Rate{Requests: 6, Per: time.Minute}, clock.now)
	steps := []struct {
		caller string
		pause  time.Duration
		n      int
		taken  int
		wait   time.Duration
	}{
		{"a", 0, 10, 6, 10 * time.Second},
		{"b", 0, 1, 1, 0},
		{"a", 9500 * time.Millisecond, 1, 0, time.Second},
		{"a", 500 * time.Millisecond, 2, 1, 10 * time.Second},
		{"a", 30 * time.Second, 9, 3, 10 * time.Second},
		{"b", 0, 9, 6, 10 * time.Second},
		{"a", 10 * time.Minute, 9, 6, 10 * time.Second},
	}
	for i, s := range steps {
		clock.move(s.pause)
		taken, wait := take(l, s.caller, s.n)
		if taken != s.taken || wait != s.wait {
			t.Errorf("step %d: %s took %d of %d and waits %v, want %d and %v", i, s.caller, taken, s.n, wait, s.taken, s.wait)
		}
	}
}

// What the limiter remembers is bounded, and those it forgets are not refused.
func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	l := NewLimiter(Rate{Requests: 1, Per: time.Minute}, clock.now)
	l.buckets.max = 10
	for i := range 1000 {
		if _, ok := l.Allow(fmt.Sprint("caller ", i)); !ok {
			t.Fatalf("call %d was refused", i)
		}
		if n := len(l.buckets.young) + len(l.buckets.old); n > 2*l.buckets.max+1 {
			t.Fatalf("%d buckets are kept, more than %d", n, 2*l.buckets.max)
		}
	}
	if _, ok := l.Allow("caller 999"); ok {
		t.Error("the newest caller was forgotten")
	}
}

func TestLimiterOff(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{{}, {Requests: 0, Per: time.Minute}} {
		if n, _ := take(NewLimiter(rate, nil), "a", 1000); n != 1000 {
			t.Errorf("%+v let %d of 1000 calls through", rate, n)
		}
	}
}

func TestLimiterTogether(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	l := NewLimiter(Rate{Requests: 100, Per: time.Hour}, clock.now)
	var wg sync.WaitGroup
	got := make([]int, 8)
	for i := range got {
		wg.Go(func() { got[i], _ = take(l, "a", 50) })
	}
	wg.Wait()
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != 100 {
		t.Errorf("8 callers together made %d calls of 100", sum)
	}
}

// TestLimiterOfHosts: hosts hold a rate together, each with its part rounded up. One that comes or goes changes what
// a caller has left here.
func TestLimiterOfHosts(t *testing.T) {
	t.Parallel()
	clock := &ticker{at: time.Unix(1e9, 0)}
	hosts := 1
	l := NewLimiter(Rate{Requests: 8, Per: time.Minute, Hosts: func() int { return hosts }}, clock.now)
	steps := []struct {
		hosts int
		pause time.Duration
		taken int
		wait  time.Duration
	}{
		{1, 0, 8, 8 * time.Second},
		{1, time.Minute, 8, 8 * time.Second},
		{3, time.Minute, 3, 20 * time.Second},
		{3, 20 * time.Second, 1, 20 * time.Second},
		{2, time.Minute, 4, 15 * time.Second},
		{1, time.Minute, 8, 8 * time.Second},
		{100, time.Hour, 1, time.Minute},
		{0, time.Minute, 8, 8 * time.Second}, // none was read yet
	}
	for i, s := range steps {
		clock.move(s.pause)
		hosts = s.hosts
		if taken, wait := take(l, "a", 100); taken != s.taken || wait != s.wait {
			t.Errorf("step %d: %d calls with %d hosts and a wait of %v, want %d and %v", i, taken, s.hosts, wait, s.taken, s.wait)
		}
	}
	hosts = 2
	clock.move(time.Minute)
	l.Allow("left")
	hosts = 8
	if taken, _ := take(l, "left", 10); taken != 1 {
		t.Errorf("a caller has %d calls of what it had left before others came, want its part of 1", taken)
	}
}
