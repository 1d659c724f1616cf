package iacp

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

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
	closed  bool
	// room has a value when a message has left, added when one has come.
	room, added chan struct{}
	// last is closed when no message comes any more.
	last chan struct{}
}

func newQueue() *queue {
	return &queue{waiting: make([][]early, len(message.Priorities)), room: make(chan struct{}, 1), added: make(chan struct{}, 1), last: make(chan struct{})}
}

// signal puts a value into a channel with place for one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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
			signal(q.added)
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

// pop returns the next message, if there is one. Nothing of it stays in the queue.
func (q *queue) pop() (m early, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for rank, list := range slices.Backward(q.waiting) {
		if len(list) == 0 {
			continue
		}
		m, list[0] = list[0], early{}
		if q.waiting[rank] = list[1:]; len(list) == 1 {
			q.waiting[rank] = nil
		}
		q.count--
		q.bytes -= len(m.text)
		signal(q.room)
		return m, true
	}
	return m, false
}

// rest waits for the next message, and reports whether the worker goes on: it ends when over fires, when
// none comes any more, and with ctx.
func (q *queue) rest(ctx context.Context, over *time.Timer) bool {
	select {
	case <-q.added:
		return true
	case <-over.C:
	case <-q.last:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working = q.count > 0
	return q.working
}

// enqueue puts a message into the queue. The peer is not read until there is room.
func (c *conn) enqueue(m message.Message, text []byte) error {
	if err := c.admitQueued(text); err != nil {
		return err
	}
	begin, err := c.queue.push(c.ctx, early{m, text})
	if err != nil {
		c.releaseQueued(text)
	}
	if begin {
		c.taking.Add(1)
		go c.work()
	}
	return err
}

// leave ends the work of a worker, unless a message waits.
func (q *queue) leave() (left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if left = q.count == 0; left {
		q.working = false
	}
	return left
}

// rejoin begins the work again of a worker that has left, and counts it. It returns false where another
// works, and after close.
func (q *queue) rejoin(workers *sync.WaitGroup) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.working || q.closed {
		return false
	}
	q.working = true
	workers.Add(1)
	return true
}

// close notes that no message comes any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.last)
	}
}

// endTaking waits until what was read is taken. Nothing more is read.
func (c *conn) endTaking() {
	c.queue.close()
	c.taking.Wait()
}

// work takes the messages of the queue. It rests between them: a worker for each would grow its stack
// each time. So it waits itself for the answer to a question that is alone; another worker begins when a
// message comes meanwhile.
func (c *conn) work() {
	over := time.NewTimer(c.g.Rest)
	defer over.Stop()
	for goesOn := true; goesOn; goesOn = c.queue.rest(c.ctx, over) {
		for {
			m, ok := c.queue.pop()
			if !ok {
				break
			}
			q := c.takeQueued(m)
			c.releaseQueued(m.text)
			switch {
			case q == nil:
			case q.alone && c.queue.leave():
				c.taking.Done()
				m = early{} // it is held no more
				c.reply(*q)
				if !c.queue.rejoin(&c.taking) {
					return
				}
			default:
				go c.reply(*q)
			}
		}
		over.Reset(c.g.Rest)
	}
	c.taking.Done()
}

// takeQueued takes a message of the queue, unless the connection has ended. It returns a question whose
// answer is to be waited for.
func (c *conn) takeQueued(m early) *question {
	if c.ctx.Err() != nil {
		return nil
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
		return c.take(caller, m.Message, m.text)
	}
	return nil
}
