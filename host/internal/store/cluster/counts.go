package cluster

import "sync/atomic"

// Counts are numbers of a member that only grow.
type Counts struct {
	// Fenced counts the hosts that it has fenced, Taken and Given the slots that it took and gave away,
	// and LateBeats the signs of life that came two beats or more after the one before.
	Fenced, Taken, Given, LateBeats int64
}

type counters struct{ fenced, taken, given, lateBeats atomic.Int64 }

// Counts returns the numbers of the member.
func (m *Member) Counts() Counts {
	return Counts{m.counters.fenced.Load(), m.counters.taken.Load(), m.counters.given.Load(), m.counters.lateBeats.Load()}
}
