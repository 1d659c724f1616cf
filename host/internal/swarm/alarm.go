package swarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// alarms calls back when a task's time is up. An alarm that was set earlier
// than the task's present deadline does nothing: the callee looks again.
type alarms struct {
	mu   sync.Mutex
	due  alarmHeap
	wake chan struct{}
}

type alarm struct {
	at  time.Time
	key TaskKey
}

func newAlarms() *alarms { return &alarms{wake: make(chan struct{}, 1)} }

func (a *alarms) set(key TaskKey, at time.Time) {
	a.mu.Lock()
	first := len(a.due) == 0 || at.Before(a.due[0].at)
	heap.Push(&a.due, alarm{at, key})
	a.mu.Unlock()
	if !first {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run calls ring for every alarm whose time has come, until ctx ends.
func (a *alarms) run(ctx context.Context, now func() time.Time, ring func(context.Context, TaskKey)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-a.wake:
		}
		keys, next := a.take(now())
		for _, key := range keys {
			ring(ctx, key)
		}
		timer.Reset(next)
	}
}

// take removes what is due and says how long to sleep.
func (a *alarms) take(now time.Time) (keys []TaskKey, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.due) > 0 && !a.due[0].at.After(now) {
		keys = append(keys, heap.Pop(&a.due).(alarm).key)
	}
	if len(a.due) == 0 {
		return keys, time.Hour
	}
	return keys, a.due[0].at.Sub(now)
}

type alarmHeap []alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *alarmHeap) Push(x any)        { *h = append(*h, x.(alarm)) }

func (h *alarmHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
