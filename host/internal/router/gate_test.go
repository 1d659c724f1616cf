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

// crowd asks a gate to be let in, and keeps who was, in order.
type crowd struct {
	g      *gate
	mu     sync.Mutex
	inside []string
}

// ask lets somebody ask who stays inside for a while, and returns when he is
// inside or waits.
func (c *crowd) ask(ctx context.Context, peer string, stays time.Duration) {
	go func() {
		leave := c.g.enter(ctx, peer)
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

func (c *crowd) names() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.inside, " ")
}

// empty checks that nobody is inside or waits, and that nothing is left of them.
func (c *crowd) empty(t *testing.T) {
	t.Helper()
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	if c.g.line.Busy() != 0 || c.g.line.Waiting() != 0 || c.g.peers != 0 {
		t.Errorf("%d are inside, %d wait, %d peers", c.g.line.Busy(), c.g.line.Waiting(), c.g.peers)
	}
}

// A peer never has more than its share, all together no more than the pool beyond
// one for each, and whoever has nothing under way is let in at once.
func TestGateBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{g: newGate(3, 3, time.Now)}
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
func TestGateFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{g: newGate(2, 8, time.Now)}
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

// Whoever gives up at the moment when he is let in leaves nothing behind.
func TestGateGivesUp(t *testing.T) {
	t.Parallel()
	g := newGate(1, 1, time.Now)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		first := g.enter(t.Context(), "a")
		done := make(chan func())
		go func() { done <- g.enter(ctx, "a") }()
		go cancel()
		first()
		if leave := <-done; leave != nil {
			leave()
		}
		cancel()
	}
	(&crowd{g: g}).empty(t)
}
