package pulse

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
)

// DefaultSize is the number of events that a ring keeps by default.
const DefaultSize = 8192

// Ring keeps the last events of a host and numbers them from 1. Publishing never waits for a
// reader: readers look at the events without a lock. It is safe for concurrent use.
type Ring struct {
	host        string
	incarnation string
	slots       []atomic.Pointer[Entry]
	// head is the number of the last event.
	head atomic.Uint64

	// mu orders those who publish. Readers hold it only to be woken.
	mu sync.Mutex
	// waiting has a channel for each reader that waits, which is closed by the next event.
	waiting map[*Reader]chan struct{}
	closed  bool
}

// Entry is an event in a ring.
type Entry struct {
	N uint64
	Event
	encoded atomic.Pointer[[]byte]
}

// JSON returns the event in JSON. It is encoded for its first reader.
func (e *Entry) JSON() []byte {
	if raw := e.encoded.Load(); raw != nil {
		return *raw
	}
	raw := e.encode()
	e.encoded.Store(&raw)
	return raw
}

// NewRing returns a ring of size events. host is the name of the host for readers; the
// numbers are of this process, which the ring's incarnation names.
func NewRing(host string, size int) *Ring {
	var random [6]byte
	_, _ = rand.Read(random[:]) // it never fails
	return &Ring{host: host, incarnation: hex.EncodeToString(random[:]), slots: make([]atomic.Pointer[Entry], size), waiting: map[*Reader]chan struct{}{}}
}

// Host returns the name of the host.
func (r *Ring) Host() string { return r.host }

// ID returns the id of the event with a number.
func (r *Ring) ID(n uint64) string { return r.incarnation + "-" + strconv.FormatUint(n, 10) }

// Publish adds events in their order.
func (r *Ring) Publish(events ...Event) {
	if len(events) == 0 {
		return
	}
	entries := make([]Entry, len(events))
	r.mu.Lock()
	n := r.head.Load()
	for i := range events {
		n++
		entries[i].N, entries[i].Event = n, events[i]
		r.slot(n).Store(&entries[i])
	}
	r.head.Store(n)
	r.wake()
	r.mu.Unlock()
}

func (r *Ring) slot(n uint64) *atomic.Pointer[Entry] { return &r.slots[n%uint64(len(r.slots))] }

// Close ends the readers once they have read the last event: the host stops.
func (r *Ring) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
}

// wake wakes the readers that wait. The caller holds mu.
func (r *Ring) wake() {
	for _, wake := range r.waiting {
		close(wake)
	}
	clear(r.waiting)
}

// wait returns a channel that is closed once there is an event that the reader has not looked
// at, and nil if there is one. It returns io.EOF where no event will come.
func (r *Ring) wait(reader *Reader) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.head.Load() > reader.at:
		return nil, nil
	case r.closed:
		return nil, io.EOF
	}
	if r.waiting[reader] == nil {
		r.waiting[reader] = make(chan struct{})
	}
	return r.waiting[reader], nil
}

// DropTenant removes the events of a tenant that was erased. Their numbers stay.
func (r *Ring) DropTenant(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.slots {
		if e := r.slots[i].Load(); e != nil && e.Tenant == tenant {
			r.slots[i].Store(&Entry{N: e.N})
		}
	}
}
