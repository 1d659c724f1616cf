package pulse

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"
)

// pause is the least time between two looks of a reader at the ring, so that a busy host does
// not wake each of its readers at each commit.
const pause = 50 * time.Millisecond

// Reader follows the events that its filter selects. It is used by one goroutine at a time, and
// must be closed.
type Reader struct {
	ring   *Ring
	filter Filter
	// at is the number of the last event that was looked at.
	at uint64
	// reset is to be reported before anything else; nil for nothing.
	reset *Reset
	// ends is set for a reader that ends behind the event with the number until.
	ends  bool
	until uint64
}

// Reset means that events before this place are missing: what a reader knows must be read
// anew elsewhere, and is whole from here on.
type Reset struct {
	Reason string
	// Missed is the number of events that the reader does not get, of all kinds and
	// tenants; 0 where that is not known.
	Missed uint64
}

// Reasons of a [Reset].
const (
	// ResetNew: the reader has just come.
	ResetNew = "new"
	// ResetIncarnation: the reader's last event is one of another host, or of this one before
	// it was started again.
	ResetIncarnation = "incarnation"
	// ResetBehind: the reader was too slow, or away for too long.
	ResetBehind = "behind"
)

// maxBatch bounds the events of one [Reader.Next].
const maxBatch = 512

// NewReader returns a reader that goes on after the event with the id last, or begins with
// the next event if last is empty.
func (r *Ring) NewReader(last string, filter Filter) *Reader {
	reader := &Reader{ring: r, filter: filter, at: r.head.Load()}
	incarnation, digits, _ := strings.Cut(last, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case last == "":
		reader.reset = &Reset{Reason: ResetNew}
	case err != nil || incarnation != r.incarnation || n > reader.at:
		reader.reset = &Reset{Reason: ResetIncarnation}
	default:
		reader.at = n
	}
	return reader
}

// NewKeptReader returns a reader of the events that the ring has kept until now, those after the
// id last, or all if last is empty.
func (r *Ring) NewKeptReader(last string, filter Filter) *Reader {
	reader := r.NewReader(last, filter)
	reader.ends, reader.until = true, r.head.Load()
	if last == "" {
		reader.reset, reader.at = nil, reader.until-min(reader.until, uint64(len(r.slots)))
	}
	return reader
}

// ID returns the id after whose event the reader goes on.
func (r *Reader) ID() string { return r.ring.ID(r.at) }

// Ended reports whether the reader was to read what was kept, and has read it.
func (r *Reader) Ended() bool { return r.ends && r.at >= r.until }

// Close ends the reader.
func (r *Reader) Close() {
	r.ring.mu.Lock()
	defer r.ring.mu.Unlock()
	delete(r.ring.waiting, r)
}

// Next waits for the next events. A reset comes alone. It ends with the cause of
// ctx, and with io.EOF when the host stops or a reader of what was kept has read it.
func (r *Reader) Next(ctx context.Context) (*Reset, []*Entry, error) {
	for looked := false; ; looked = true {
		if reset := r.takeReset(); reset != nil {
			return reset, nil, nil
		}
		if list := r.takeEvents(); len(list) > 0 {
			return nil, list, nil
		}
		if r.Ended() {
			return nil, nil, io.EOF
		}
		if looked { // what has come was not for this reader
			if err := r.Pause(ctx); err != nil {
				return nil, nil, err
			}
		}
		wake, err := r.ring.wait(r)
		if err != nil {
			return nil, nil, err
		}
		if wake == nil {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// Pause waits before the next look, so that what happens meanwhile is read together. It
// ends early with the cause of ctx.
func (r *Reader) Pause(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// takeReset returns the reset that is due. A reader that is behind goes on in the middle of
// the ring, so that it is not behind again at once.
func (r *Reader) takeReset() *Reset {
	if reset := r.reset; reset != nil {
		r.reset = nil
		return reset
	}
	head, size := r.ring.head.Load(), uint64(len(r.ring.slots))
	if head-r.at <= size {
		return nil
	}
	next := head - size/2
	missed := next - r.at
	r.at = next
	return &Reset{Reason: ResetBehind, Missed: missed}
}

// takeEvents returns the events that follow and are still in the ring.
func (r *Reader) takeEvents() (list []*Entry) {
	for head := r.ring.head.Load(); r.at < head && len(list) < maxBatch; r.at++ {
		e := r.ring.slot(r.at + 1).Load()
		if e.N != r.at+1 {
			return list // overwritten meanwhile: the reader is behind
		}
		if r.filter.selects(&e.Event) {
			list = append(list, e)
		}
	}
	return list
}
