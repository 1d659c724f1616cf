package swarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// alarms calls back when a task's time is up. A task has one alarm at most.
type alarms struct {
	mu   sync.Mutex
	due  alarmHeap
	by   map[TaskKey]*alarm
	wake chan struct{}
}

type alarm struct {
	at  time.Time
	key TaskKey
	// place is where the alarm lies in the heap.
	place int
}

func newAlarms() *alarms {
	return &alarms{by: map[TaskKey]*alarm{}, wake: make(chan struct{}, 1)}
}

// set replaces a task's alarm; the zero time takes it away.
func (a *alarms) set(key TaskKey, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	has := a.by[key]
	switch {
	case at.IsZero():
		if has != nil {
			heap.Remove(&a.due, has.place)
			delete(a.by, key)
		}
		return
	case has == nil:
		has = &alarm{at: at, key: key}
		a.by[key] = has
		heap.Push(&a.due, has)
	case !has.at.Equal(at):
		has.at = at
		heap.Fix(&a.due, has.place)
	}
	if a.due[0] != has {
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
		key := heap.Pop(&a.due).(*alarm).key
		delete(a.by, key)
		keys = append(keys, key)
	}
	if len(a.due) == 0 {
		return keys, time.Hour
	}
	return keys, a.due[0].at.Sub(now)
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
