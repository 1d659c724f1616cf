package swarm

import (
	"context"
	"fmt"
	"time"

	"skep/abi"
)

// ledger is what a tenant has under way in all its instances.
type ledger struct {
	load
	// rows and tasks are what posts that are being accepted bring.
	rows, tasks int
}

// demand is what somebody wants of a tenant's quota.
type demand struct {
	rows, tasks int
	// keeps says that the store would keep more, bytes how much more, where that
	// is known.
	keeps bool
	bytes int64
}

// excess says which quota a demand exceeds.
type excess struct {
	text string
	// retry is when it may fit.
	retry time.Duration
}

// Times after which a refused post may be tried again.
const (
	retrySoon    = 5 * time.Second
	retryStorage = time.Hour
)

// reserve takes what a post needs of its tenant's quota and of its instance's
// limits; free gives it back, once the post is accepted or has failed.
func (r *Runtime) reserve(ctx context.Context, t *live, p Post) (free func(), err error) {
	d, err := t.demand(p)
	if err != nil {
		return nil, err
	}
	kept, err := r.footprint(ctx, t.key.Tenant)
	if err != nil {
		return nil, err
	}
	rows := max(1, d.rows) // a turn that goes on is one
	if err := r.room(ctx, t, rows); err != nil {
		return nil, err
	}
	r.mu.Lock()
	over := r.exceeds(t.key.Tenant, d, kept)
	if over == nil {
		l := r.ledger(t.key.Tenant)
		l.rows, l.tasks = l.rows+d.rows, l.tasks+d.tasks
	}
	r.mu.Unlock()
	if over != nil {
		r.leave(t.key.InstanceKey, rows)
		return nil, &Refusal{Kind: ErrLimit, Text: over.text, Retry: over.retry}
	}
	return func() {
		r.leave(t.key.InstanceKey, rows)
		r.mu.Lock()
		defer r.mu.Unlock()
		l := r.ledger(t.key.Tenant)
		l.rows, l.tasks = l.rows-d.rows, l.tasks-d.tasks
		r.closeLedger(t.key.Tenant)
	}, nil
}

// demand is what a post would need if it was accepted now. A resumed turn brings
// nothing that was not counted when its message came.
func (t *live) demand(p Post) (demand, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.MustExist && !t.exists {
		return demand{}, refuse(ErrNotFound, "task '%s' not found", p.Task)
	}
	d := demand{rows: max(1, len(p.To)), keeps: true}
	if p.Results != nil {
		d = demand{}
	}
	if !t.exists || t.rec.State != StateRunning {
		d.tasks = 1
	}
	return d, nil
}

// footprint reads what a tenant keeps, if a quota asks for it.
func (r *Runtime) footprint(ctx context.Context, tenant string) (Footprint, error) {
	q := r.quotas[tenant].Quota
	if q.Storage <= 0 && q.MessagesPerDay <= 0 {
		return Footprint{}, nil
	}
	f, err := r.store.Footprint(ctx, tenant)
	if f.Day != dayOf(r.now()) {
		f.Made = 0
	}
	return f, err
}

// exceeds checks a demand against a tenant's quota. The caller holds mu.
func (r *Runtime) exceeds(tenant string, d demand, kept Footprint) *excess {
	q := r.quotas[tenant].Quota
	var has ledger
	if l := r.ledgers[tenant]; l != nil {
		has = *l
	}
	over := func(retry time.Duration, key, has string) *excess {
		return &excess{fmt.Sprintf("tenant %q has %s, its quota; raise [tenants.%s] %s", tenant, has, tenant, key), retry}
	}
	switch {
	case q.Tasks > 0 && d.tasks > 0 && has.running+has.tasks+d.tasks > q.Tasks:
		return over(retrySoon, "tasks or try later", counted(int64(has.running+has.tasks), "task")+" running")
	case q.Queue > 0 && d.rows > 0 && has.waiting+has.rows+d.rows > q.Queue:
		return over(retrySoon, "queue or try later", counted(int64(has.waiting+has.rows), "message")+" waiting")
	case q.MessagesPerDay > 0 && d.rows > 0 && kept.Made+int64(has.rows+d.rows) > q.MessagesPerDay:
		return over(untilTomorrow(r.now()), "messages_per_day or try tomorrow (UTC)", "made "+counted(kept.Made, "message")+" today")
	case q.Storage > 0 && d.keeps && kept.Bytes >= q.Storage:
		return over(retryStorage, "storage, or shorten [store] history_retention", counted(kept.Bytes, "byte")+" stored")
	case q.Storage > 0 && d.bytes > 0 && kept.Bytes+d.bytes > q.Storage:
		return &excess{fmt.Sprintf("tenant %q has %s of its quota of %d stored, and %d more do not fit; raise [tenants.%s] storage, or shorten [store] history_retention",
			tenant, counted(kept.Bytes, "byte"), q.Storage, d.bytes, tenant), retryStorage}
	}
	return nil
}

// counted is a number with its noun.
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// ledger returns a tenant's, new or not. The caller holds mu.
func (r *Runtime) ledger(tenant string) *ledger {
	l := r.ledgers[tenant]
	if l == nil {
		l = &ledger{}
		r.ledgers[tenant] = l
	}
	return l
}

// closeLedger forgets the ledger of a tenant of which nothing is under way. The
// caller holds mu.
func (r *Runtime) closeLedger(tenant string) {
	if l := r.ledgers[tenant]; l != nil && *l == (ledger{}) {
		delete(r.ledgers, tenant)
	}
}

// MayKeep answers LIMIT when the turn's tenant may not have more stored.
func (t *Turn) MayKeep(op abi.Op) *abi.Error { return t.fits(op, 0) }

// mayKeepBytes answers LIMIT when the tenant may not have so many bytes more.
func (t *Turn) mayKeepBytes(op abi.Op, bytes int64) *abi.Error {
	return t.within(op, demand{keeps: true, bytes: bytes})
}

// fits checks what a turn is about to send against its tenant's quota. Turns
// that run beside it may use it up as well; what they have sent is kept.
func (t *Turn) fits(op abi.Op, rows int) *abi.Error {
	if rows > 0 {
		rows += t.made()
	}
	return t.within(op, demand{rows: rows, keeps: true})
}

func (t *Turn) within(op abi.Op, d demand) *abi.Error {
	if t.again != nil {
		return nil // it was decided then
	}
	kept, err := t.rt.footprint(t.rt.life, t.task.key.Tenant)
	if err != nil {
		return abi.Errorf(abi.CodeInternal, op, "store", "the quota of tenant %q cannot be read", t.task.key.Tenant)
	}
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	if over := t.rt.exceeds(t.task.key.Tenant, d, kept); over != nil {
		return abi.Errorf(abi.CodeLimit, op, "quota", "%s", over.text)
	}
	return nil
}

// made counts the rows that the turn has staged.
func (t *Turn) made() int {
	n := len(t.timers)
	for _, e := range t.staged {
		n += len(e.recipients) + len(e.letters)
	}
	return n
}

// day is the length of a day of UTC.
const day = 24 * time.Hour

// dayOf numbers the days of UTC.
func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

func untilTomorrow(t time.Time) time.Duration {
	return t.UTC().Truncate(day).Add(day).Sub(t)
}
