package broker

import (
	"context"
	"sync"

	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/semaphore"
)

// inbox holds the messages that have come and are not taken. The library reads nothing from a
// connection, not even what confirms a message of ours, while a message waits for its place in the
// inFlight that the broker may send at once; brokers send more.
type inbox struct {
	// room are the bytes that may wait.
	room *semaphore.Weighted
	// came has a value after a message has come.
	came chan struct{}

	mu      sync.Mutex
	waiting []*paho.Publish
}

func newInbox(maxPacket int) *inbox {
	return &inbox{room: semaphore.NewWeighted(int64(inFlight * maxPacket)), came: make(chan struct{}, 1)}
}

// sizeOf is what a message takes of the room, in bytes.
func sizeOf(p *paho.Publish) int64 { return int64(len(p.Topic) + len(p.Payload)) }

// push adds a message. It waits for room until ctx ends.
func (in *inbox) push(ctx context.Context, p *paho.Publish) error {
	if err := in.room.Acquire(ctx, sizeOf(p)); err != nil {
		return err
	}
	in.mu.Lock()
	in.waiting = append(in.waiting, p)
	in.mu.Unlock()
	select {
	case in.came <- struct{}{}:
	default:
	}
	return nil
}

// pop waits for the oldest message until ctx ends. The caller gives its room back.
func (in *inbox) pop(ctx context.Context) (p *paho.Publish, ok bool) {
	for ctx.Err() == nil {
		in.mu.Lock()
		if len(in.waiting) > 0 {
			p, in.waiting = in.waiting[0], in.waiting[1:]
			in.mu.Unlock()
			return p, true
		}
		in.mu.Unlock()
		select {
		case <-in.came:
		case <-ctx.Done():
		}
	}
	return nil, false
}
