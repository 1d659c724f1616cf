package swarm

import (
	"context"
	"errors"
	"io"
	"time"

	"skep/abi"
)

// Errors of a [Store], which may come wrapped.
var (
	// ErrNotFound is returned for a row that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrDuplicate is returned when the key of a submission is taken. The earlier
	// submission comes with it.
	ErrDuplicate = errors.New("duplicate submission")
	// ErrFenced is returned to a host whose data another host has taken over. No
	// later write of this host succeeds.
	ErrFenced = errors.New("fenced: another host owns this store")
	// ErrQuota is returned when a write would exceed a quota.
	ErrQuota = errors.New("quota exceeded")
	// ErrUnavailable is returned when the server that keeps the rows does not answer: the same
	// may succeed later.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrErasing is returned for writes to a tenant that is being erased.
	ErrErasing = errors.New("tenant is being erased")
)

// Store keeps everything that must survive the process. It is composed of ports;
// code that needs only one of them takes that one.
//
// All methods are safe for concurrent use. Accept, Commit and Journal are atomic:
// durable when they return nil, without effect when they return one of the errors
// above or the cause of their context's end, which prevents a write that has not begun.
// With another error they may have been durable or without effect: the caller reads what
// is there, see [Task.Mutations]. A read sees every write that has returned.
type Store interface {
	TaskLog
	TurnJournal
	KV
	Blobs
	Outboxes
	Tenants
	Retention
	// Secret returns 32 random bytes, made once for this store. Turn seeds and
	// idempotency keys derive from it.
	Secret(ctx context.Context) ([]byte, error)
	// Backup writes a copy of everything except the keys to a new file. The copy is
	// of one moment. Reads and writes go on meanwhile.
	Backup(ctx context.Context, path string) error
}

// TaskLog keeps tasks: their records, queues, events, histories and agent states, and
// the submissions that started them. Accept and Commit write everything in a
// [Mutation], the parts that the other ports read included, or nothing. Overlapping
// mutations of one task are applied one after the other.
type TaskLog interface {
	// Accept applies m and records sub and m.Submissions. If the (instance, door, key) of
	// one of them is taken and has not expired at m.Task.Updated, Accept writes nothing
	// and returns the earlier submission with ErrDuplicate. Of two overlapping calls with
	// one key, one wins. It returns ErrQuota if m.Admission does not hold.
	Accept(ctx context.Context, m Mutation, sub Submission) (Submission, error)
	// Commit applies m. It returns ErrQuota if m.KV does not fit.
	Commit(ctx context.Context, m Mutation) error
	// Submission returns a submission by its key, or ErrNotFound.
	Submission(ctx context.Context, key InstanceKey, door, id string) (Submission, error)
	// Submissions lists the submissions of a gateway's door that were accepted before the
	// given one (the zero one for the start), newest first, then by falling Key: at most
	// limit. It lists those with the field Accepted.
	Submissions(ctx context.Context, key InstanceKey, door string, before Submission, limit int) ([]Submission, error)
	// RunningTasks lists the tasks in state running, which this host goes on with. It
	// writes nothing.
	RunningTasks(ctx context.Context) ([]RunningTask, error)
	// Load returns a task with its rows and agent states, all of one moment, or
	// ErrNotFound.
	Load(ctx context.Context, key TaskKey) (Snapshot, error)
	// LoadQueue is Load without anything but the task and its rows, for those who only
	// show it.
	LoadQueue(ctx context.Context, key TaskKey) (Snapshot, error)
	// Instances lists the instances of one swarm that have tasks.
	Instances(ctx context.Context, tenant, swarm string) ([]InstanceKey, error)
	// Tasks lists the task records of an instance, newest first, created before
	// the given time (zero for the start): at most limit.
	Tasks(ctx context.Context, key InstanceKey, before time.Time, limit int) ([]Task, error)
	// PausedTasks lists the records of paused tasks of a swarm: of one instance, of a
	// tenant if within has no Instance, or of all if it has no Tenant. A page has at most
	// limit records, and fewer if they exceed [PageBytes], but at least one. It begins
	// behind a place, empty for the start. next is its end, empty on the last page. Another
	// place is refused with ErrInvalid.
	PausedTasks(ctx context.Context, within InstanceKey, after string, limit int) (tasks []Task, next string, err error)
	// ListTasks lists the records of the tasks that filter selects, newest first or dearest
	// first. It looks at a bounded number of tasks: a page has at most limit records, and may
	// have none although others follow. It begins behind a place, empty for the start. next is
	// its end, empty on the last page. Another place is refused with ErrInvalid.
	ListTasks(ctx context.Context, filter TaskFilter, after string, limit int) (tasks []Task, next string, err error)
	// Events returns events with Seq > after in pages, like History.
	Events(ctx context.Context, key TaskKey, after int64, limit int) ([]Event, error)
	// History returns entries with Seq > after, oldest first: at most limit, and
	// fewer if they exceed [PageBytes], but at least one. Only an empty page is the
	// end.
	History(ctx context.Context, key TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error)
	// HistoryTail returns the newest entries of an agent's history, oldest first:
	// at most entries of them, and fewer if they exceed bytes.
	HistoryTail(ctx context.Context, key TaskKey, agent string, entries, bytes int) ([]abi.HistoryEntry, error)
}

// TurnJournal keeps the records of turns. The entries of a record are numbered
// from 1 without gaps; a write that would leave a gap is refused. The [Mutation] that
// commits a turn writes the end of its record.
type TurnJournal interface {
	// Journal makes entries of a running turn durable, and decides w.Cas if it is
	// set: ok reports whether the value was the expected one. The decision and the
	// entries are one write. Without a Header the turn must have a record, else
	// ErrNotFound. It returns ErrQuota if the new value does not fit.
	Journal(ctx context.Context, key TaskKey, turn int64, w JournalWrite) (ok bool, err error)
	// Record returns the record of a turn, or ErrNotFound.
	Record(ctx context.Context, key TaskKey, turn int64) (Record, error)
	// Records returns the records of turns with N > after, without entries and
	// inputs, in pages like [TaskLog.History].
	Records(ctx context.Context, key TaskKey, after int64, limit int) ([]Record, error)
}

// KV reads the values of a scope. They are written by [Mutation.KV] and
// [JournalWrite.Cas], which keep the quotas.
type KV interface {
	// KVGet returns a value, or ErrNotFound.
	KVGet(ctx context.Context, key TaskKey, scope KVScope, name string) ([]byte, error)
	// KVList returns the names that begin with prefix and are greater than after,
	// in the order of their bytes: at most limit.
	KVList(ctx context.Context, key TaskKey, scope KVScope, prefix, after string, limit int) ([]string, error)
	// KVUsage returns the size of a scope, zero for one without values.
	KVUsage(ctx context.Context, key TaskKey, scope KVScope) (KVUsage, error)
}

// Blobs reads blobs, which are written by [Mutation.Blobs]. A tenant has one copy of
// a blob. It is deleted with the last task that uses it.
type Blobs interface {
	// Blob returns a blob of a tenant, or ErrNotFound.
	Blob(ctx context.Context, tenant string, id BlobID) ([]byte, error)
	// TaskBlob returns a blob that a mutation of the task has added, or ErrNotFound.
	TaskBlob(ctx context.Context, key TaskKey, id BlobID) ([]byte, error)
}

// Outboxes reads the outbox messages of tasks, which are written by [Mutation.Outbox]
// and removed by [Mutation.Delivered].
type Outboxes interface {
	// Outboxes lists the tasks with outbox messages that are not dead, once for each
	// peer.
	Outboxes(ctx context.Context) ([]OutboxKey, error)
	// DeadLetters returns the dead letters of a tenant with Place < before (0 for
	// the newest), newest first, in pages like [TaskLog.History].
	DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]DeadLetter, error)
	// DeadLetter returns a dead letter of a tenant by its ID, or ErrNotFound.
	DeadLetter(ctx context.Context, tenant, id string) (DeadLetter, error)
}

// Tenants measures, exports and erases tenants as a whole.
type Tenants interface {
	// Footprint returns the size of a tenant's data from counters. They change with
	// the writes they count.
	Footprint(ctx context.Context, tenant string) (Footprint, error)
	// Usage sums what [Mutation.Usage] has added: one group for each tenant, agent of a
	// tenant, model or time that has any, in the order of their names or times. Minutes older
	// than [UsageKept] are deleted by Purge, and the oldest beyond [UsageRows].
	Usage(ctx context.Context, q UsageQuery) ([]UsageGroup, error)
	// HasData reports whether Erase would remove anything: a task, a value, a name, a
	// token, a key.
	HasData(ctx context.Context, tenant string) (bool, error)
	// TenantFootprints lists tenants of which [Tenants.HasData] is true with a name greater
	// than after, by name: at most limit.
	TenantFootprints(ctx context.Context, after string, limit int) ([]TenantFootprint, error)
	// Export writes all data of a tenant as JSON lines. It reads a page at a time;
	// a row that changes meanwhile is written as it is when its page is read.
	Export(ctx context.Context, tenant string, w io.Writer) error
	// Erase removes all data of a tenant and destroys its keys. Until it returns,
	// writes for the tenant get ErrErasing. The caller stops the tenant's turns
	// first. Erase takes many writes; one that was interrupted goes on at the next
	// open.
	Erase(ctx context.Context, tenant string) error
}

// Retention deletes old data. Both methods take many writes; what an interrupted
// call has not deleted is deleted by the next.
type Retention interface {
	// Purge deletes submissions that are answered and expired, and the records of gateways
	// that have expired, and counts them.
	Purge(ctx context.Context, now time.Time) (int64, error)
	// Prune deletes everything that rule no longer keeps.
	Prune(ctx context.Context, rule PruneRule) (Pruned, error)
}

// PageBytes bounds the bodies that one read of a log or a history brings into
// memory, in bytes.
const PageBytes = 1 << 20

// PruneRule selects what [Retention.Prune] deletes. A zero time deletes nothing.
type PruneRule struct {
	// Records deletes the records of turns that ended before it, if their task has
	// ended too. The record of an unfinished or suspended turn stays.
	Records time.Time
	// Tasks deletes tasks that ended before it, with everything that belongs to them.
	Tasks time.Time
	// Submissions deletes submissions that are answered and expired by then.
	Submissions time.Time
	// Keep, if set, is called on the caller's goroutine for each task that Tasks
	// selects. The task stays if it returns true.
	Keep func(TaskKey) bool
	// Gone, if set, is called whenever the tasks that Keep has let go are out of reach:
	// new ones may begin under their ids while the pruning goes on.
	Gone func()
}

// Pruned counts what [Retention.Prune] deleted.
type Pruned struct {
	Records, Tasks, Submissions int64
}

// TenantFootprint is a tenant with its footprint.
type TenantFootprint struct {
	Tenant string
	Footprint
}

// Footprint measures the data of a tenant.
type Footprint struct {
	// Bytes of messages, logs, histories, states, records, values and blobs, as
	// they are stored.
	Bytes int64
	Tasks int64
	// Day is the UTC day of the newest mutation, in days since 1970. Made counts the
	// rows inserted on Day.
	Day, Made int64
	// Spend is the cost of the model calls of Day, by their entries.
	Spend
}
