package swarm

import (
	"context"
	"fmt"
	"time"

	"skep/abi"
)

// tenantLoad is the load of a tenant in all its instances.
type tenantLoad struct {
	load
	// rows and tasks count posts that are being accepted.
	rows, tasks int
}

// CountLoad returns the running tasks and the messages that wait in them.
func (r *Runtime) CountLoad() (tasks, messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, tl := range r.tenantLoads {
		tasks, messages = tasks+tl.running, messages+tl.waiting
	}
	return tasks, messages
}

// quotaDemand is a demand on a tenant's quota.
type quotaDemand struct {
	rows, tasks int
	// keeps means that the store would keep more: bytes more, where that is known.
	keeps bool
	bytes int64
}

// quotaExcess is the quota that a demand exceeds.
type quotaExcess struct {
	// key is the quota's in the tenant's section of swarm.toml.
	text, key string
	// retry is the time after which it may fit.
	retry time.Duration
}

// refusal is the excess of a tenant as the answer to a door.
func (q *quotaExcess) refusal(tenant string) error {
	return &Refusal{Kind: ErrLimit, Text: q.text, Retry: q.retry, Cause: "quota", Key: "[tenants." + tenant + "] " + q.key}
}

// Times after which a refused post may be tried again.
const (
	retrySoon    = 5 * time.Second
	retryStorage = time.Hour
)

// reservation is a post's part of its tenant's quota and of its instance's limits. It is
// released when the load of the post is counted, in the same moment, or when the post has
// failed.
type reservation struct {
	rt   *Runtime
	key  InstanceKey
	rows int
	quotaDemand
	// peer is the swarm that has one task more by it, nil for none.
	peer     *peerKey
	released bool
	// admission is what the store checks, nil for nothing.
	admission *Admission
}

// reserveQuota reserves a post's part. The caller releases it.
func (r *Runtime) reserveQuota(ctx context.Context, t *activeTask, p Post) (*reservation, error) {
	d, err := t.quotaDemand(p)
	if err != nil {
		return nil, err
	}
	kept, err := r.footprint(ctx, t.key.Tenant)
	if err != nil {
		return nil, err
	}
	open, err := r.countOpen(ctx, t.key.Tenant, d)
	if err != nil {
		return nil, err
	}
	rows := max(1, d.rows) // a resumed turn is one
	if err := r.reserveInstance(ctx, t, rows); err != nil {
		return nil, err
	}
	r.mu.Lock()
	over := r.checkQuota(t.key.Tenant, d, kept, open)
	if over == nil {
		tl := r.tenantLoad(t.key.Tenant)
		tl.rows, tl.tasks = tl.rows+d.rows, tl.tasks+d.tasks
	}
	r.mu.Unlock()
	if over != nil {
		r.releaseInstance(t.key.InstanceKey, rows)
		return nil, over.refusal(t.key.Tenant)
	}
	return &reservation{rt: r, key: t.key.InstanceKey, rows: rows, quotaDemand: d, admission: r.admission(t.key.Tenant, d)}, nil
}

func (v *reservation) release() {
	v.rt.mu.Lock()
	defer v.rt.mu.Unlock()
	v.releaseLocked()
}

// releaseLocked is release by a holder of Runtime.mu. A nil reservation has no part.
func (v *reservation) releaseLocked() {
	if v == nil || v.released {
		return
	}
	v.released = true
	v.rt.releaseInstanceLocked(v.key, v.rows)
	tl := v.rt.tenantLoad(v.key.Tenant)
	tl.rows, tl.tasks = tl.rows-v.quotaDemand.rows, tl.tasks-v.tasks
	v.rt.dropIdleTenantLoad(v.key.Tenant)
	if v.peer != nil {
		v.rt.countPeerTasks(*v.peer, -1)
	}
}

// quotaDemand is the demand of a post. A resumed turn adds nothing that was not counted
// when its message came.
func (t *activeTask) quotaDemand(p Post) (quotaDemand, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkMoved(); err != nil {
		return quotaDemand{}, err
	}
	if p.MustExist && !t.exists {
		return quotaDemand{}, refuse(ErrNotFound, "task '%s' not found", p.Task)
	}
	d := quotaDemand{rows: max(1, len(p.To)), keeps: true}
	if p.Results != nil {
		d = quotaDemand{}
	}
	for _, b := range p.Blobs {
		d.bytes += int64(len(b.Data))
	}
	if !t.exists || t.rec.State != StateRunning {
		d.tasks = 1
	}
	return d, nil
}

// footprint reads the size of a tenant's data, if a quota needs it.
func (r *Runtime) footprint(ctx context.Context, tenant string) (Footprint, error) {
	q := r.tenants.Quota(tenant)
	if q.Storage <= 0 && q.MessagesPerDay <= 0 {
		return Footprint{}, nil
	}
	f, err := r.store.Footprint(ctx, tenant)
	if f.Day != dayOf(r.now()) {
		f.Made = 0
	}
	return f, err
}

// countOpen counts the tasks of a tenant that run at all hosts that share the store, if a quota needs it.
// It refuses most of what the store would refuse: of posts at once the store decides.
func (r *Runtime) countOpen(ctx context.Context, tenant string, d quotaDemand) (int, error) {
	if r.share.cluster == nil || r.tenants.Quota(tenant).Tasks <= 0 || d.tasks == 0 {
		return 0, nil
	}
	running, err := r.share.cluster.CountRunning(ctx, []string{tenant})
	return running[tenant], err
}

// checkQuota checks a demand against a tenant's quota; open is what [Runtime.countOpen] has returned. The
// caller holds mu.
func (r *Runtime) checkQuota(tenant string, d quotaDemand, kept Footprint, open int) *quotaExcess {
	var has tenantLoad
	if tl := r.tenantLoads[tenant]; tl != nil {
		has = *tl
	}
	if open > has.running+has.tasks {
		has.running, has.tasks = open, 0
	}
	has.waiting += r.othersWaiting(tenant)
	return r.tenants.Quota(tenant).check(tenant, d, has, kept, r.now())
}

// check checks a demand of a tenant that has something.
func (q Quota) check(tenant string, d quotaDemand, has tenantLoad, kept Footprint, now time.Time) *quotaExcess {
	over := func(retry time.Duration, key, remedy, has string) *quotaExcess {
		return &quotaExcess{fmt.Sprintf("tenant %q has %s, its quota; raise [tenants.%s] %s%s", tenant, has, tenant, key, remedy), key, retry}
	}
	switch {
	case q.Tasks > 0 && d.tasks > 0 && has.running+has.tasks+d.tasks > q.Tasks:
		return over(retrySoon, "tasks", " or try later", countNoun(int64(has.running+has.tasks), "task")+" running")
	case q.Queue > 0 && d.rows > 0 && has.waiting+has.rows+d.rows > q.Queue:
		return over(retrySoon, "queue", " or try later", countNoun(int64(has.waiting+has.rows), "message")+" waiting")
	case q.MessagesPerDay > 0 && d.rows > 0 && kept.Made+int64(has.rows+d.rows) > q.MessagesPerDay:
		return over(untilTomorrow(now), "messages_per_day", " or try tomorrow (UTC)", "made "+countNoun(kept.Made, "message")+" today")
	case q.Storage > 0 && d.keeps && kept.Bytes >= q.Storage:
		return over(retryStorage, "storage", ", or shorten [store] history_retention", countNoun(kept.Bytes, "byte")+" stored")
	case q.Storage > 0 && d.bytes > 0 && kept.Bytes+d.bytes > q.Storage:
		return &quotaExcess{fmt.Sprintf("tenant %q has %s of its quota of %d stored, and %d more do not fit; raise [tenants.%s] storage, or shorten [store] history_retention",
			tenant, countNoun(kept.Bytes, "byte"), q.Storage, d.bytes, tenant), "storage", retryStorage}
	}
	return nil
}

// countNoun renders a number with its noun.
func countNoun(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// tenantLoad returns the load of a tenant, new or not. The caller holds mu.
func (r *Runtime) tenantLoad(tenant string) *tenantLoad {
	tl := r.tenantLoads[tenant]
	if tl == nil {
		tl = &tenantLoad{}
		r.tenantLoads[tenant] = tl
	}
	return tl
}

// dropIdleTenantLoad drops the entry of a tenant without load. The caller holds mu.
func (r *Runtime) dropIdleTenantLoad(tenant string) {
	if tl := r.tenantLoads[tenant]; tl != nil && *tl == (tenantLoad{}) {
		delete(r.tenantLoads, tenant)
	}
}

// CheckStorage returns LIMIT when the tenant's storage quota is used up.
func (t *Turn) CheckStorage(op abi.Op) *abi.Error { return t.checkQuota(op, 0) }

// checkStorageBytes returns LIMIT when so many more bytes exceed the tenant's storage
// quota.
func (t *Turn) checkStorageBytes(op abi.Op, bytes int64) *abi.Error {
	return t.checkDemand(op, quotaDemand{keeps: true, bytes: bytes})
}

// checkQuota checks a number of rows to send against the tenant's quota. Other turns
// may use the quota up at the same time; what they have sent is kept.
func (t *Turn) checkQuota(op abi.Op, rows int) *abi.Error {
	if rows > 0 {
		rows += t.countStagedRows()
	}
	return t.checkDemand(op, quotaDemand{rows: rows, keeps: true})
}

// checkDemand returns LIMIT for a demand beyond the tenant's quota. It waits while the store fails, until
// the runtime stops or the task ends.
func (t *Turn) checkDemand(op abi.Op, d quotaDemand) *abi.Error {
	if t.replay != nil {
		return nil // an earlier attempt decided it
	}
	var kept Footprint
	err := t.rt.retryStore(t.rt.lifetime, func() (err error) {
		if t.isKilled() {
			return errTaskEnded
		}
		kept, err = t.rt.footprint(t.rt.lifetime, t.task.key.Tenant)
		return err
	}, "read what a tenant stores", "tenant", t.task.key.Tenant)
	if err != nil {
		return abi.Errorf(abi.CodeInternal, op, "store", "the quota of tenant %q cannot be read", t.task.key.Tenant)
	}
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	if over := t.rt.checkQuota(t.task.key.Tenant, d, kept, 0); over != nil {
		return abi.Errorf(abi.CodeLimit, op, "quota", "%s", over.text)
	}
	return nil
}

// isKilled reports whether the task has ended under the turn.
func (t *Turn) isKilled() bool {
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	return t.run.killed
}

// countStagedRows counts the rows that the turn has staged.
func (t *Turn) countStagedRows() int {
	n := len(t.timers)
	for _, e := range t.staged {
		n += len(e.recipients) + len(e.outbox)
	}
	return n
}

// day is the length of a day of UTC.
const day = 24 * time.Hour

// dayOf is the number of a UTC day since 1970.
func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

func untilTomorrow(t time.Time) time.Duration {
	return t.UTC().Truncate(day).Add(day).Sub(t)
}
