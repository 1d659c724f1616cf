package scheduler

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each wakeup comes at its time: the ones after the first, one that is set before the others
// while Run waits, and one that is set again when it has come. A removed one does not come.
func TestWakeups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct {
			key string
			at  time.Duration
		}
		var got []call
		begun, w := time.Now(), NewWakeups[string]()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx, time.Now, func(_ context.Context, key string) {
				got = append(got, call{key, time.Since(begun)})
				if len(got) == 1 {
					w.Set(key, begun.Add(6*time.Second))
				}
			})
		}()
		at := func(key string, seconds time.Duration) { w.Set(key, begun.Add(seconds*time.Second)) }
		synctest.Wait()
		at("removed", 3)
		at("third", 30)
		at("second", 5)
		synctest.Wait()
		at("first", 1)
		w.Set("removed", time.Time{})
		at("moved", 2)
		at("moved", 20)
		time.Sleep(time.Minute)
		cancel()
		<-done
		want := []call{{"first", time.Second}, {"second", 5 * time.Second}, {"first", 6 * time.Second}, {"moved", 20 * time.Second}, {"third", 30 * time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("called back were %v, want %v", got, want)
		}
	})
}

// A clock that jumps ahead of the host's own, as the server's does once another one takes its place, makes
// what is due by it come within lookEvery. Without a jump each wakeup comes at its time.
func TestWakeupsClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		begun, woken := time.Now(), make(chan time.Duration, 1)
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		w := NewWakeups[string]()
		w.Set("hour", begun.Add(time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.Run(ctx, now, func(context.Context, string) { woken <- time.Since(begun) })
		time.Sleep(time.Minute)
		ahead.Store(int64(time.Hour))
		if at := <-woken; at > time.Minute+lookEvery {
			t.Errorf("the wakeup came %s after the begin, want at most %s after the jump at 1m", at, lookEvery)
		}
	})
}
