package uamp

import (
	"context"
	"sync"
)

// ackQueue writes the acknowledgements of streams beside their reading: a partner that sends may
// read nothing meanwhile. It is safe for concurrent use.
type ackQueue struct {
	mu sync.Mutex
	// due are the acknowledgements that are to be written, the newest of each stream: it stands
	// for those before it.
	due  map[string]func()
	wake chan struct{}
}

func newAckQueue() *ackQueue {
	return &ackQueue{due: map[string]func(){}, wake: make(chan struct{}, 1)}
}

// put has an acknowledgement of a stream written in the place of an older one.
func (q *ackQueue) put(stream string, write func()) {
	q.mu.Lock()
	q.due[stream] = write
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes acknowledgements until ctx ends.
func (q *ackQueue) run(ctx context.Context) {
	for {
		select {
		case <-q.wake:
		case <-ctx.Done():
			return
		}
		for write := q.next(); write != nil && ctx.Err() == nil; write = q.next() {
			write()
		}
	}
}

// next takes an acknowledgement, nil for none.
func (q *ackQueue) next() (write func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for stream, one := range q.due {
		delete(q.due, stream)
		return one
	}
	return nil
}
