package listen

import (
	"net/netip"
	"time"
)

// offenders are the networks of connections that had to make room while they were
// sent more than anybody took. Each is remembered for one to two terms. The zero
// value is empty.
type offenders struct {
	// recent is added to, before is what recent was in the term before.
	recent, before map[netip.Prefix]struct{}
	began          time.Time
}

const (
	// term is how long an offender stays out at least.
	term = 10 * time.Second
	// mostOffenders bounds what a term remembers: some 4 MiB.
	mostOffenders = 1 << 16
)

// add remembers a network; the invalid one, which nothing is counted for, never.
func (o *offenders) add(from netip.Prefix, now time.Time) {
	o.turn(now)
	if !from.IsValid() || len(o.recent) >= mostOffenders {
		return
	}
	if o.recent == nil {
		o.recent = map[netip.Prefix]struct{}{}
	}
	o.recent[from] = struct{}{}
}

func (o *offenders) has(from netip.Prefix, now time.Time) bool {
	o.turn(now)
	_, ok := o.recent[from]
	if !ok {
		_, ok = o.before[from]
	}
	return ok
}

// turn begins a new term when the last is over.
func (o *offenders) turn(now time.Time) {
	switch passed := now.Sub(o.began); {
	case passed < term:
	case passed < 2*term:
		o.recent, o.before, o.began = nil, o.recent, now
	default:
		o.recent, o.before, o.began = nil, nil, now
	}
}
