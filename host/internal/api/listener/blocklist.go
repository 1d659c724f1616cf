package listener

import (
	"net/netip"
	"time"
)

// blocklist holds the networks of connections that were evicted while they did
// not read what they were sent. Each is blocked for one to two terms. The zero
// value is empty.
type blocklist struct {
	// recent holds the networks of this term, before the networks of the last.
	recent, before map[netip.Prefix]struct{}
	rotated        time.Time
}

const (
	// blockTerm is the shortest time of a block.
	blockTerm = 10 * time.Second
	// maxBlocked bounds the networks of a term: about 4 MiB.
	maxBlocked = 1 << 16
)

// add blocks a network. It ignores the invalid prefix, which stands for
// connections that are not counted.
func (o *blocklist) add(from netip.Prefix, now time.Time) {
	o.rotate(now)
	if !from.IsValid() || len(o.recent) >= maxBlocked {
		return
	}
	if o.recent == nil {
		o.recent = map[netip.Prefix]struct{}{}
	}
	o.recent[from] = struct{}{}
}

func (o *blocklist) contains(from netip.Prefix, now time.Time) bool {
	o.rotate(now)
	_, ok := o.recent[from]
	if !ok {
		_, ok = o.before[from]
	}
	return ok
}

// rotate begins a new term when the current one is over.
func (o *blocklist) rotate(now time.Time) {
	switch passed := now.Sub(o.rotated); {
	case passed < blockTerm:
	case passed < 2*blockTerm:
		o.recent, o.before, o.rotated = nil, o.recent, now
	default:
		o.recent, o.before, o.rotated = nil, nil, now
	}
}
