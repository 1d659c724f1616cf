package audit

import (
	"context"
	"sync"
	"time"
)

// Bounds on what refusals cost. At most maxKinds different ones are told apart
// between two writes. Lines come from a bucket of burst that fills with
// perSecond; what finds it empty is counted in one line every summary.
const (
	maxKinds  = 256
	burst     = 256
	perSecond = 1
	summary   = 10 * time.Second
)

// refusals are those that are not written yet.
type refusals struct {
	mu    sync.Mutex
	kinds map[kind]int // index in list
	list  []Entry
	// others counts those that get no line of their own.
	others int64

	// What follows is the writer's alone.
	writing sync.Mutex
	left    float64
	filled  time.Time
	told    time.Time
}

// kind is what refusals have in common that become one line.
type kind struct{ address, tenant, principal, reason string }

func newRefusals() refusals { return refusals{kinds: map[kind]int{}, left: burst} }

// Refused notes that something was refused. It never waits for the disk; the
// entry is written within about a second, once for all with the same address,
// principal and reason.
func (l *Log) Refused(e Entry) {
	r := &l.refusals
	if e.Time.IsZero() {
		e.Time = l.opt.Now()
	}
	e.Outcome, e.Count = Refused, 1
	k := kind{e.Address, e.Tenant, e.Principal, e.Reason}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := r.kinds[k]; ok {
		r.list[i].Count++
		return
	}
	if len(r.list) == maxKinds {
		r.others++
		return
	}
	r.kinds[k] = len(r.list)
	r.list = append(r.list, e)
}

// Run writes refusals until ctx ends, and those that are left then. After a write
// that failed it tries again each time.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(l.opt.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		_ = l.flush() // what failed is noted, and counted on
		l.mend()
		if ctx.Err() != nil {
			return
		}
	}
}

// flush writes what was noted. What cannot be written is counted on.
func (l *Log) flush() error {
	r := &l.refusals
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	list, others := r.list, r.others
	r.list, r.others = nil, 0
	clear(r.kinds)
	r.mu.Unlock()

	out, rest := r.choose(list, others, l.opt.Now())
	var err error
	if len(out) > 0 {
		if err = l.write(out); err != nil {
			for _, e := range out {
				rest += e.Count
			}
		}
	}
	r.mu.Lock()
	r.others += rest
	r.mu.Unlock()
	return err
}

// last makes the next write tell of all.
func (r *refusals) last() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.told = time.Time{}
}

// choose returns the entries to write, and the number of refusals that wait for
// the next summary.
func (r *refusals) choose(list []Entry, others int64, now time.Time) (out []Entry, rest int64) {
	r.left = min(burst, r.left+perSecond*max(0, now.Sub(r.filled).Seconds()))
	r.filled = now
	n := min(len(list), int(r.left))
	r.left -= float64(n)
	for _, e := range list[n:] {
		others += e.Count
	}
	out = list[:n:n]
	if others > 0 && now.Sub(r.told) >= summary {
		r.told = now
		out = append(out, Entry{
			Time: now, Act: "request", Outcome: Refused, Count: others,
			Reason: "more refusals than the log tells apart",
		})
		others = 0
	}
	return out, others
}
