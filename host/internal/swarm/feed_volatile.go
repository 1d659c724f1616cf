package swarm

import (
	"math"

	"skep/abi"
)

// volatileBuffer holds the volatile events of a task for its readers: the newest ones,
// and none without readers. activeTask.mu guards it.
type volatileBuffer struct {
	feeds map[*Feed]struct{}
	ring  []volatileEvent
	// first is the position of ring[0] among all events ever pushed.
	first int64
	bytes int
}

// volatileEvent is an event and the end of the log when it came: readers get it after
// that event and before the next.
type volatileEvent struct {
	event Event
	after int64
}

func (e volatileEvent) size() int { return len(e.event.Description) + len(e.event.Extra) }

// Bounds of one task's buffer: events, and bytes of them.
const (
	maxVolatileEvents = 256
	maxVolatileBytes  = 1 << 20
)

// pushEvent adds an event for the readers. A reader that lags behind loses the oldest
// events; when all readers do, the new one is lost.
func (b *volatileBuffer) pushEvent(e Event, after int64) abi.EmitStatus {
	if len(b.feeds) == 0 {
		return abi.EmitOK
	}
	one := volatileEvent{e, after}
	for len(b.ring) > 0 && (len(b.ring) >= maxVolatileEvents || b.bytes+one.size() > maxVolatileBytes) {
		if b.furthestReader() <= b.first {
			return abi.EmitBusy
		}
		b.bytes -= b.ring[0].size()
		b.ring[0] = volatileEvent{}
		b.ring = b.ring[1:]
		b.first++
	}
	b.ring = append(b.ring, one)
	b.bytes += one.size()
	for f := range b.feeds {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return abi.EmitOK
}

// furthestReader is the position of the reader that has read most.
func (b *volatileBuffer) furthestReader() (seen int64) {
	for f := range b.feeds {
		seen = max(seen, f.seen)
	}
	return seen
}

// addReader adds a reader of all later events.
func (b *volatileBuffer) addReader(f *Feed) {
	if b.feeds == nil {
		b.feeds = map[*Feed]struct{}{}
	}
	f.seen = b.first + int64(len(b.ring))
	b.feeds[f] = struct{}{}
}

// removeReader removes a reader, and with the last one all events.
func (b *volatileBuffer) removeReader(f *Feed) {
	delete(b.feeds, f)
	if len(b.feeds) == 0 {
		b.first += int64(len(b.ring))
		b.ring, b.bytes = nil, 0
	}
}

// takeEvents returns a reader's next events. If there are none, limit is the event of
// the log after which the next one belongs.
func (b *volatileBuffer) takeEvents(f *Feed) (events []Event, limit int64) {
	for len(f.begin) > 0 {
		if f.begin[0].after > f.after {
			return events, f.begin[0].after
		}
		events = append(events, f.begin[0].event)
		f.begin = f.begin[1:]
	}
	f.seen = max(f.seen, b.first)
	for _, e := range b.ring[f.seen-b.first:] {
		if e.after > f.after {
			return events, e.after
		}
		events = append(events, e.event)
		f.seen++
	}
	return events, math.MaxInt64
}
