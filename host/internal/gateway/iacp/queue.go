package iacp

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"skep/host/internal/gateway/iacp/message"
)

// Limits of a [queue]. A single message may be larger.
const (
	maxQueued      = 256
	maxQueuedBytes = 4 << 20
)

// queue holds the messages of a connection that were read and not taken yet: the most urgent
// come first, and of one priority the oldest (I-002, V-I22).
type queue struct {
	mu      sync.Mutex
	waiting [][]early // by priority, the most urgent last
	count   int
	bytes   int
	working bool
	// room has a value when a message has left.
	room chan struct{}
}

func newQueue() *queue {
	return &queue{waiting: make([][]early, len(message.Priorities)), room: make(chan struct{}, 1)}
}

// push adds a message when there is room for it, and reports whether a worker must begin.
func (q *queue) push(ctx context.Context, m early) (begin bool, err error) {
	for {
		q.mu.Lock()
		if q.count == 0 || q.count < maxQueued && q.bytes+len(m.text) <= maxQueuedBytes {
			defer q.mu.Unlock()
			rank := slices.Index(message.Priorities, cmp.Or(m.Meta().Priority, message.Normal))
			q.waiting[rank] = append(q.waiting[rank], m)
			q.count++
			q.bytes += len(m.text)
			begin, q.working = !q.working, true
			return begin, nil
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// pop returns the next message. Without one, the worker ends.
func (q *queue) pop() (m early, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for rank := len(q.waiting) - 1; rank >= 0; rank-- {
		if len(q.waiting[rank]) == 0 {
			continue
		}
		m, q.waiting[rank] = q.waiting[rank][0], q.waiting[rank][1:]
		q.count--
		q.bytes -= len(m.text)
		select {
		case q.room <- struct{}{}:
		default:
		}
		return m, true
	}
	q.waiting, q.working = make([][]early, len(message.Priorities)), false // room of past messages
	return m, false
}

// work takes the messages of the queue until it is empty.
func (c *conn) work() {
	for {
		m, ok := c.queue.pop()
		if !ok {
			return
		}
		c.takeQueued(m)
		c.release(m.text)
	}
}

// takeQueued takes a message of the queue, unless the connection has ended.
func (c *conn) takeQueued(m early) {
	if c.ctx.Err() != nil {
		return
	}
	caller, err := c.g.Runtime.Renew(c.caller)
	switch {
	case err != nil:
		c.refuse(m.Message, &fault{code: codeAuth, text: notLetIn})
		c.end(errAway)
	case m.Type == message.MessageStatus:
		c.status(caller, m.Message)
	case c.withdraw(caller, m.Message, m.text):
	default:
		c.take(caller, m.Message, m.text)
	}
}
