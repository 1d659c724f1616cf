package router

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// limiterCallers acquires from a limiter and keeps the order of those admitted.
type limiterCallers struct {
	g      *requestLimiter
	mu     sync.Mutex
	inside []string
}

// ask starts a caller that stays for a while, and returns when it is admitted or
// waits.
func (c *limiterCallers) ask(ctx context.Context, peer string, stays time.Duration) {
	go func() {
		leave := c.g.acquire(ctx, peer)
		if leave == nil {
			return
		}
		c.mu.Lock()
		c.inside = append(c.inside, peer)
		c.mu.Unlock()
		time.Sleep(stays)
		leave()
	}()
	synctest.Wait()
}

func (c *limiterCallers) names() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.inside, " ")
}

// empty checks that no caller is admitted or waits, and that no state is left.
func (c *limiterCallers) empty(t *testing.T) {
	t.Helper()
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	if c.g.queue.Busy() != 0 || c.g.queue.Waiting() != 0 || c.g.peers != 0 {
		t.Errorf("%d are inside, %d wait, %d peers", c.g.queue.Busy(), c.g.queue.Waiting(), c.g.peers)
	}
}

// A peer never exceeds its share, all together not the pool beyond one for each,
// and a peer without a request is admitted at once.
func TestRequestLimiterBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &limiterCallers{g: newRequestLimiter(3, 3, time.Now)}
		ctx, cancel := context.WithCancel(t.Context())
		for _, peer := range strings.Fields("a a a a b b b c") {
			c.ask(ctx, peer, time.Minute)
		}
		if got, want := c.names(), "a a a b b c"; got != want {
			t.Errorf("let in are %s, want %s", got, want)
		}
		cancel()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := c.names(), "a a a b b c"; got != want {
			t.Errorf("let in are %s after those that wait gave up, want %s", got, want)
		}
		c.empty(t)
	})
}

// Of those that wait, the peer is next whose requests took the least time: many
// slow peers do not keep a quick one waiting longer than one request lasts.
func TestRequestLimiterFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &limiterCallers{g: newRequestLimiter(2, 8, time.Now)}
		ctx := t.Context()
		for range 10 {
			c.ask(ctx, "slow", 30*time.Second)
		}
		for range 4 {
			c.ask(ctx, "quick", time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		got := strings.Fields(c.names())
		if len(got) != 14 || slices.Index(got, "quick") != 3 || strings.Join(got[3:7], " ") != "quick quick quick quick" {
			t.Errorf("let in were %s", got)
		}
		c.empty(t)
	})
}

// A caller that gives up while it is admitted leaves no state behind.
func TestRequestLimiterCancel(t *testing.T) {
	t.Parallel()
	g := newRequestLimiter(1, 1, time.Now)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		first := g.acquire(t.Context(), "a")
		done := make(chan func())
		go func() { done <- g.acquire(ctx, "a") }()
		go cancel()
		first()
		if leave := <-done; leave != nil {
			leave()
		}
		cancel()
		if (&limiterCallers{g: g}).empty(t); t.Failed() {
			return // the next call would wait for ever
		}
	}
}
