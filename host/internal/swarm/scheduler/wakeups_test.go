package scheduler

import (
	"context"
	"slices"
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
