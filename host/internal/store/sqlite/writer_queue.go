package sqlite

import (
	"context"
	"sync"

	"skep/host/internal/swarm/scheduler"
)

// tenantChanges bounds what waits of one tenant. Its callers wait for room
// beyond that, and no other tenant's do.
const tenantChanges = 256

// costBytes is what costs as much to write as the fixed part of a change.
const costBytes = 16 << 10

// job is a change on its way to the writer. done takes exactly one result.
type job struct {
	change
	tenant string
	done   chan error
}

// cost is what a job counts for when tenants share the writer.
func (j job) cost() float64 { return 1 + float64(j.bytes())/costBytes }

// queue holds the changes that wait for the writer. The tenant whose turn it is
// has had least written by its weight; each tenant's changes stay in order. The
// store's own work is a tenant without a name.
type queue struct {
	// some holds one when there may be something new, for the writer alone.
	some chan struct{}

	mu      sync.Mutex
	tenants *scheduler.FairQueue[*tenantQueue]
	closed  bool
	// full are the channels of those who wait for room.
	full map[*tenantQueue]chan struct{}
}

// tenantQueue are the changes of one tenant.
type tenantQueue struct{ jobs []job }

func newQueue(weight func(tenant string) float64) *queue {
	return &queue{
		some:    make(chan struct{}, 1),
		tenants: scheduler.NewFairQueue(weight, func() *tenantQueue { return &tenantQueue{} }),
		full:    map[*tenantQueue]chan struct{}{},
	}
}

// putJob hands a job over, as soon as there is room for one more of its tenant. It
// returns the cause of ctx's end when that comes first, and [ErrClosed] after
// close.
func (q *queue) putJob(ctx context.Context, j job) error {
	for {
		room, err := q.offerJob(j)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// offerJob takes a job in, or returns what is closed when there may be room.
func (q *queue) offerJob(j job) (room chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	p := q.tenants.Member(j.tenant)
	if len(p.Item.jobs) >= tenantChanges {
		if q.full[p.Item] == nil {
			q.full[p.Item] = make(chan struct{})
		}
		return q.full[p.Item], nil
	}
	p.Item.jobs = append(p.Item.jobs, j)
	q.tenants.Enqueue(p)
	q.wakeWriter()
	return nil, nil
}

func (q *queue) wakeWriter() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// nextJob waits for a job. It reports false when the queue is closed and empty.
func (q *queue) nextJob() (job, bool) {
	for {
		j, ok, closed := q.takeJob()
		if ok || closed {
			return j, ok
		}
		<-q.some
	}
}

// takeJob returns the job whose turn it is, if there is one.
func (q *queue) takeJob() (j job, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.tenants.Next(scheduler.Any)
	if p == nil {
		return job{}, false, q.closed
	}
	w := p.Item
	j, w.jobs[0] = w.jobs[0], job{}
	w.jobs = w.jobs[1:]
	q.tenants.Grant(p, j.cost())
	if len(w.jobs) == 0 {
		w.jobs = nil
		q.tenants.Dequeue(p)
	}
	q.tenants.Settle(p, 0)
	// Half a queue at once, so that not all who wait wake up for each place.
	if room := q.full[w]; room != nil && len(w.jobs) <= tenantChanges/2 {
		delete(q.full, w)
		close(room)
	}
	return j, true, q.closed
}

// close refuses jobs from now on; those that are in are still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for w, room := range q.full {
		delete(q.full, w)
		close(room)
	}
	q.wakeWriter()
}
