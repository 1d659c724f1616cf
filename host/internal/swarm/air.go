package swarm

import (
	"math"

	"skep/abi"
)

// air holds what a task's readers are shown beside its log. It keeps the newest
// events for the readers there are, and nothing without any. It is guarded by
// live.mu.
type air struct {
	feeds map[*Feed]struct{}
	ring  []aired
	// first is the place of ring[0] in all that was ever kept.
	first int64
	bytes int
}

// aired is a volatile event and the end of the log when it came: readers get
// it behind that event and before the next.
type aired struct {
	event Event
	after int64
}

func (e aired) size() int { return len(e.event.Description) + len(e.event.Extra) }

// Bounds of what one task keeps for its readers.
const (
	maxAir      = 256
	maxAirBytes = 1 << 20
)

// push keeps an event for the readers. A reader that lags behind loses the
// oldest; when all of them do, there is no room and the new one is lost.
func (a *air) push(e Event, after int64) abi.EmitStatus {
	if len(a.feeds) == 0 {
		return abi.EmitOK
	}
	one := aired{e, after}
	for len(a.ring) > 0 && (len(a.ring) >= maxAir || a.bytes+one.size() > maxAirBytes) {
		if a.fastest() <= a.first {
			return abi.EmitBusy
		}
		a.bytes -= a.ring[0].size()
		a.ring[0] = aired{}
		a.ring = a.ring[1:]
		a.first++
	}
	a.ring = append(a.ring, one)
	a.bytes += one.size()
	for f := range a.feeds {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return abi.EmitOK
}

// fastest is how far the reader has come that has come farthest.
func (a *air) fastest() (seen int64) {
	for f := range a.feeds {
		seen = max(seen, f.seen)
	}
	return seen
}

// join adds a reader, who gets what comes from now on.
func (a *air) join(f *Feed) {
	if a.feeds == nil {
		a.feeds = map[*Feed]struct{}{}
	}
	f.seen = a.first + int64(len(a.ring))
	a.feeds[f] = struct{}{}
}

// leave takes a reader off, and with the last one all that was kept.
func (a *air) leave(f *Feed) {
	delete(a.feeds, f)
	if len(a.feeds) == 0 {
		a.first += int64(len(a.ring))
		a.ring, a.bytes = nil, 0
	}
}

// next takes the events that a reader gets now. If there are none, limit is
// the event of the log behind which the next one belongs.
func (a *air) next(f *Feed) (events []Event, limit int64) {
	f.seen = max(f.seen, a.first)
	for _, e := range a.ring[f.seen-a.first:] {
		if e.after > f.after {
			return events, e.after
		}
		events = append(events, e.event)
		f.seen++
	}
	return events, math.MaxInt64
}
