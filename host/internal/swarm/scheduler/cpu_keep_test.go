package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// compute takes a token at once and gives it back a millisecond later.
func compute(t *testing.T, c *CPU, clock *ticking, owner Owner) {
	t.Helper()
	if c.request(owner) != nil {
		t.Fatalf("%v finds no free token", owner)
	}
	clock.move(time.Millisecond)
	c.Release(owner)
}

// A flood leaves the last token to a tenant that computes now and then, and gets it back
// when that one does not come any more.
func TestCPUKeepsAToken(t *testing.T) {
	for _, tokens := range []int{2, 4} {
		clock := &ticking{time.Unix(1e9, 0)}
		c := NewCPU(tokens, clock.now, equal)
		compute(t, c, clock, of("quiet", "u"))
		flood := func(i int) Owner { return of("flood", fmt.Sprint(i)) }
		var waiting []chan struct{}
		for i := range 2 * tokens {
			if granted := c.request(flood(i)); granted != nil {
				waiting = append(waiting, granted)
			}
		}
		if got := 2*tokens - len(waiting); got != tokens-1 {
			t.Fatalf("%d tokens: the flood has %d", tokens, got)
		}
		for range 3 {
			clock.move(keepFor / 2)
			compute(t, c, clock, of("quiet", "u"))
		}
		c.Release(flood(0))
		if c.free != 1 {
			t.Errorf("%d tokens: %d free while the quiet tenant still comes", tokens, c.free)
		}
		clock.move(keepFor)
		c.Release(flood(1 % (tokens - 1)))
		if c.free != 0 {
			t.Errorf("%d tokens: %d free, kept for a tenant that is gone", tokens, c.free)
		}
	}
}

// No token is kept where there is one, or one tenant.
func TestCPUKeepsNone(t *testing.T) {
	for tokens, owners := range map[int][]Owner{1: {of("a", "u"), of("b", "u")}, 3: {of("a", "u"), of("a", "v")}} {
		clock := &ticking{time.Unix(1e9, 0)}
		c := NewCPU(tokens, clock.now, equal)
		for _, o := range owners {
			compute(t, c, clock, o)
		}
		for i := range tokens {
			if c.request(owners[0]) != nil {
				t.Errorf("token %d of %d is kept", i+1, tokens)
			}
		}
	}
}

// Whoever waits gets a token though tokens are kept, and none is lost.
func TestCPUKeepHammer(t *testing.T) {
	c := NewCPU(3, time.Now, equal)
	var wg sync.WaitGroup
	for tenant := range 3 {
		for i := range 8 {
			owner := of(fmt.Sprint(tenant), fmt.Sprint(i))
			wg.Go(func() {
				for n := range 200 {
					ctx, cancel := context.WithCancel(context.Background())
					if n%3 == 0 {
						go cancel()
					}
					if c.Acquire(ctx, owner) == nil {
						c.Release(owner)
					}
					cancel()
				}
			})
		}
	}
	wg.Wait()
	atRest(t, c, 3)
}
