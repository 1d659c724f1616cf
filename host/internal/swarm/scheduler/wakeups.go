package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Wakeups calls back when the time of a key has come. A key has one wakeup at most. It
// is safe for concurrent use.
type Wakeups[K comparable] struct {
	mu    sync.Mutex
	due   wakeupHeap[K]
	byKey map[K]*wakeup[K]
	wake  chan struct{}
}

type wakeup[K comparable] struct {
	at    time.Time
	key   K
	index int // in the heap
}

// NewWakeups returns an empty set of wakeups.
func NewWakeups[K comparable]() *Wakeups[K] {
	return &Wakeups[K]{byKey: map[K]*wakeup[K]{}, wake: make(chan struct{}, 1)}
}

// Set replaces the wakeup of a key; the zero time removes it.
func (w *Wakeups[K]) Set(key K, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.byKey[key]
	switch {
	case at.IsZero():
		if has != nil {
			heap.Remove(&w.due, has.index)
			delete(w.byKey, key)
		}
		return
	case has == nil:
		has = &wakeup[K]{at: at, key: key}
		w.byKey[key] = has
		heap.Push(&w.due, has)
	case !has.at.Equal(at):
		has.at = at
		heap.Fix(&w.due, has.index)
	}
	if w.due[0] != has {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// lookEvery is the longest time until Run reads the clock again while a wakeup is set: the clock may
// jump ahead of the timer, by which the host measures time.
const lookEvery = 5 * time.Second

// Run calls wake for every wakeup that is due, until ctx ends.
func (w *Wakeups[K]) Run(ctx context.Context, now func() time.Time, wake func(context.Context, K)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
		keys, next := w.takeDue(now())
		for _, key := range keys {
			wake(ctx, key)
		}
		timer.Reset(next)
	}
}

// takeDue removes the wakeups that are due, and returns the time until Run looks again.
func (w *Wakeups[K]) takeDue(now time.Time) (keys []K, next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.due) > 0 && !w.due[0].at.After(now) {
		key := heap.Pop(&w.due).(*wakeup[K]).key
		delete(w.byKey, key)
		keys = append(keys, key)
	}
	if len(w.due) == 0 {
		return keys, time.Hour
	}
	return keys, min(w.due[0].at.Sub(now), lookEvery)
}

type wakeupHeap[K comparable] []*wakeup[K]

func (h wakeupHeap[K]) Len() int           { return len(h) }
func (h wakeupHeap[K]) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h wakeupHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *wakeupHeap[K]) Push(x any) {
	entry := x.(*wakeup[K])
	entry.index = len(*h)
	*h = append(*h, entry)
}

func (h *wakeupHeap[K]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
