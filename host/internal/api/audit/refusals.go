package audit

import (
	"context"
	"sync"
	"time"
)

// Limits of what refusals cost: at most maxKinds different ones between two
// writes, and a bucket of burst lines that refills by perSecond. Refusals beyond
// that are counted in one line per summary.
const (
	maxKinds  = 256
	burst     = 256
	perSecond = 1
	summary   = 10 * time.Second
)

// refusals are refusals that are not written yet.
type refusals struct {
	mu    sync.Mutex
	kinds map[refusalKey]int // index in list
	list  []Entry
	// others counts refusals without a line of their own.
	others int64

	// Guarded by writing, not by mu.
	writing    sync.Mutex
	left       float64
	filled     time.Time
	summarized time.Time
}

// refusalKey groups refusals into one line.
type refusalKey struct{ address, tenant, principal, reason string }

func newRefusals() refusals { return refusals{kinds: map[refusalKey]int{}, left: burst} }

// RecordRefusal queues a refusal. It never waits for the disk: the entry is
// written within about a second, once for all with the same address, principal
// and reason.
func (l *Log) RecordRefusal(e Entry) {
	r := &l.refusals
	if e.Time.IsZero() {
		e.Time = l.opt.Now()
	}
	e.Outcome, e.Count = Refused, 1
	k := refusalKey{e.Address, e.Tenant, e.Principal, e.Reason}
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

// Run writes refusals until ctx ends, and then those that are left. After a
// failed write it tries again in each interval.
func (l *Log) Run(ctx context.Context) {
	tick := time.NewTicker(l.opt.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		_ = l.flush() // what failed is noted, and counted on
		l.syncAppended()
		l.recheck()
		l.retryWrite()
		if ctx.Err() != nil {
			return
		}
	}
}

// syncAppended waits until what [Log.Append] wrote is on disk.
func (l *Log) syncAppended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && l.unsynced {
		l.noteWrite(l.sync())
	}
}

// flush writes the queued refusals. What cannot be written is added to others.
func (l *Log) flush() error {
	r := &l.refusals
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	list, others := r.list, r.others
	r.list, r.others = nil, 0
	clear(r.kinds)
	r.mu.Unlock()

	out, rest := r.selectEntries(list, others, l.opt.Now())
	var err error
	if len(out) > 0 {
		if err = l.write(out, 0, true); err != nil {
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

// forceSummary makes the next write include the summary.
func (r *refusals) forceSummary() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.summarized = time.Time{}
}

// selectEntries returns the entries to write, and the number of refusals left for
// the next summary.
func (r *refusals) selectEntries(list []Entry, others int64, now time.Time) (out []Entry, rest int64) {
	r.left = min(burst, r.left+perSecond*max(0, now.Sub(r.filled).Seconds()))
	r.filled = now
	n := min(len(list), int(r.left))
	r.left -= float64(n)
	for _, e := range list[n:] {
		others += e.Count
	}
	out = list[:n:n]
	if others > 0 && now.Sub(r.summarized) >= summary {
		r.summarized = now
		out = append(out, Entry{
			Time: now, Act: "request", Outcome: Refused, Count: others,
			Reason: "more refusals than the log tells apart",
		})
		others = 0
	}
	return out, others
}
