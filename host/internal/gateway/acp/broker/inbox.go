package broker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/eclipse/paho.golang/paho"
	"golang.org/x/sync/semaphore"
)

// inbox holds the messages that have come and are not taken. Brokers send more than the inFlight that
// they may send at once, and behind them comes what confirms a message of ours, as the ERROR that the
// oldest of them waits for: the connection is read on whatever waits here.
type inbox struct {
	// confirmed is the room of messages that are acknowledged, in bytes, unconfirmed the room of
	// messages of quality of service 0: these are dropped without room, since no limit of MQTT
	// holds for them.
	confirmed, unconfirmed *semaphore.Weighted
	// confirmedSize is the size of confirmed.
	confirmedSize int64
	// overrun is set by the first message that is acknowledged and has no room. It is left at the
	// broker, and so are those behind it: the next connection gets them.
	overrun atomic.Bool
	// came has a value after a message has come.
	came chan struct{}

	mu      sync.Mutex
	waiting []*paho.Publish
}

func newInbox(maxPacket int) *inbox {
	size := int64(inFlight * (maxPacket + besideText))
	return &inbox{confirmed: semaphore.NewWeighted(size), confirmedSize: size, unconfirmed: semaphore.NewWeighted(int64(unconfirmedPackets * maxPacket)), came: make(chan struct{}, 1)}
}

// errDropped is returned for a message of quality of service 0 for which there is no room.
var errDropped = errors.New("too many messages of quality of service 0 wait")

// errOverrun ends a connection over which more messages came than have room, when those before them
// are taken.
var errOverrun = errors.New("the broker has sent more messages at once than there is room for; it is to send the rest again")

// Limits of messages.
const (
	unconfirmedPackets = 4   // of the largest size and of quality of service 0 that may wait
	besideText         = 512 // bytes of the heap for a message besides its texts
)

// sizeOf is what a message takes of its room, in bytes. A message that is acknowledged takes at most
// all of it: with its many short properties it would else wait for ever, and those behind it.
func (in *inbox) sizeOf(p *paho.Publish) int64 {
	size := besideText + len(p.Topic) + len(p.Payload)
	if more := p.Properties; more != nil {
		size += len(more.CorrelationData) + len(more.ContentType) + len(more.ResponseTopic)
		for _, own := range more.User {
			size += besideText + len(own.Key) + len(own.Value)
		}
	}
	if p.QoS > 0 {
		return min(int64(size), in.confirmedSize)
	}
	return int64(size)
}

// roomOf is the room in which a message waits.
func (in *inbox) roomOf(p *paho.Publish) *semaphore.Weighted {
	if p.QoS == 0 {
		return in.unconfirmed
	}
	return in.confirmed
}

// release gives back the room of a message.
func (in *inbox) release(p *paho.Publish) { in.roomOf(p).Release(in.sizeOf(p)) }

// push adds a message, or returns errDropped or errOverrun.
func (in *inbox) push(p *paho.Publish) error {
	switch hasRoom := !(p.QoS > 0 && in.overrun.Load()) && in.roomOf(p).TryAcquire(in.sizeOf(p)); {
	case !hasRoom && p.QoS == 0:
		return errDropped
	case !hasRoom:
		in.overrun.Store(true)
		return errOverrun
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

// pop waits for the oldest message until ctx ends, or none comes after an overrun. The caller gives
// its room back.
func (in *inbox) pop(ctx context.Context) (p *paho.Publish, ok bool) {
	for ctx.Err() == nil {
		in.mu.Lock()
		if len(in.waiting) > 0 {
			p, in.waiting[0] = in.waiting[0], nil // the array goes on without it
			in.waiting = in.waiting[1:]
			in.mu.Unlock()
			return p, true
		}
		in.mu.Unlock()
		if in.overrun.Load() {
			break
		}
		select {
		case <-in.came:
		case <-ctx.Done():
		}
	}
	return nil, false
}
