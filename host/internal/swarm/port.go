package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"skep/abi"
)

// Errors of a [Store].
var (
	ErrNotFound = errors.New("not found")
	// ErrDuplicate says that a submission's key is taken; the earlier
	// submission comes with it.
	ErrDuplicate = errors.New("duplicate submission")
	// ErrFenced says that another host has taken the data over.
	ErrFenced = errors.New("fenced: another host owns this store")
	// ErrQuota says that a write would exceed a quota; nothing was written.
	ErrQuota = errors.New("quota exceeded")
	// ErrErasing says that the tenant is being erased.
	ErrErasing = errors.New("tenant is being erased")
)

// Store keeps what the runtime must not forget. All methods are safe for
// concurrent use. Accept and Commit return after the change is durable; each
// is one step of one task, all or nothing. Readers see every step that has
// returned.
type Store interface {
	// Accept applies step and records sub. When sub's (instance, door, key)
	// is taken and not expired at step.Task.Updated it writes nothing and
	// returns the earlier submission with ErrDuplicate.
	Accept(ctx context.Context, step Step, sub Submission) (Submission, error)
	// Commit applies step. It answers ErrQuota when step's KV does not fit.
	Commit(ctx context.Context, step Step) error
	// Journal makes entries of a turn durable before it ends, and decides w.Cas
	// if there is one: ok says that the value was the one expected. Without a
	// Header the turn must have a record, else ErrNotFound. It answers ErrQuota
	// when the new value does not fit.
	Journal(ctx context.Context, key TaskKey, turn int64, w JournalWrite) (ok bool, err error)
	// Record returns the record of a turn, or ErrNotFound.
	Record(ctx context.Context, key TaskKey, turn int64) (Record, error)
	// Records returns the records of turns with N > after, without entries
	// and inputs, in pages like those of History.
	Records(ctx context.Context, key TaskKey, after int64, limit int) ([]Record, error)
	// Blob returns a blob of a tenant, or ErrNotFound.
	Blob(ctx context.Context, tenant string, id BlobID) ([]byte, error)
	// KVGet returns a value, or ErrNotFound.
	KVGet(ctx context.Context, key TaskKey, scope KVScope, name string) ([]byte, error)
	// KVList returns the names that begin with prefix and are greater than
	// after, in the order of their bytes, at most limit.
	KVList(ctx context.Context, key TaskKey, scope KVScope, prefix, after string, limit int) ([]string, error)
	// KVUsage returns what a scope holds.
	KVUsage(ctx context.Context, key TaskKey, scope KVScope) (KVUsage, error)
	// Claim lists the tasks in state running that this host must take up.
	Claim(ctx context.Context) ([]Claimed, error)
	// Load returns a task with its rows and agent states, or ErrNotFound.
	Load(ctx context.Context, key TaskKey) (Snapshot, error)
	// Tasks lists an instance's task records, newest first, created before
	// the given time (zero for the start); at most limit.
	Tasks(ctx context.Context, key InstanceKey, before time.Time, limit int) ([]Task, error)
	// HistoryTail returns the newest entries of an agent's history, oldest
	// first: at most entries of them, and fewer when they exceed bytes.
	HistoryTail(ctx context.Context, key TaskKey, agent string, entries, bytes int) ([]abi.HistoryEntry, error)
	// History returns entries with Seq > after, oldest first: at most limit of
	// them, and fewer when they exceed [PageBytes], but one at least. Only an
	// empty page is the end.
	History(ctx context.Context, key TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error)
	// Events returns events with Seq > after, in pages like those of History.
	Events(ctx context.Context, key TaskKey, after int64, limit int) ([]Event, error)
	// Submission returns a submission by its key, or ErrNotFound.
	Submission(ctx context.Context, key InstanceKey, door, id string) (Submission, error)
	// Instances lists the instances of one swarm that have tasks.
	Instances(ctx context.Context, tenant, swarm string) ([]InstanceKey, error)
	// Purge forgets submissions that are answered and expired.
	Purge(ctx context.Context, now time.Time) (int64, error)
	// Prune forgets what rule no longer keeps.
	Prune(ctx context.Context, rule PruneRule) (Pruned, error)
	// Export writes all that is kept of a tenant as JSON lines. It holds a
	// page of it in memory at a time; what changes meanwhile is written as it
	// is when its page is read.
	Export(ctx context.Context, tenant string, w io.Writer) error
	// Erase removes all that is kept of a tenant and destroys its keys. Writes
	// for the tenant answer ErrErasing until it returns; the caller stops its
	// turns first. An erasure that was cut short goes on at the next open.
	Erase(ctx context.Context, tenant string) error
	// Keeps reports whether there is anything that Erase would remove: a task, a
	// value, a name, a token, a key.
	Keeps(ctx context.Context, tenant string) (bool, error)
	// Backup writes a copy of everything but the keys to a new file.
	Backup(ctx context.Context, path string) error
	// Footprint returns what a tenant keeps, from counters.
	Footprint(ctx context.Context, tenant string) (Footprint, error)
	// Outboxes lists the tasks with letters that are not dead, once for each peer
	// that they are for.
	Outboxes(ctx context.Context) ([]Outbox, error)
	// DeadLetters returns a tenant's dead letters with a smaller Place than before
	// (0 for the newest), newest first, in pages like those of History.
	DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]DeadLetter, error)
	// DeadLetter returns a dead letter of a tenant by its ID, or ErrNotFound.
	DeadLetter(ctx context.Context, tenant, id string) (DeadLetter, error)
	// Secret returns 32 random bytes, made once for this store. Turn seeds
	// and idempotency keys derive from it.
	Secret(ctx context.Context) ([]byte, error)
}

// PageBytes bounds what one read of a log or a history brings into memory.
const PageBytes = 1 << 20

// PruneRule says what is kept no longer. A zero time keeps everything.
type PruneRule struct {
	// Records of turns that ended before it go, if their task has ended too.
	// The record of an unfinished or suspended turn stays.
	Records time.Time
	// Tasks that ended before it go, with all that belongs to them.
	Tasks time.Time
	// Submissions that are answered and expired by then go, as by Purge.
	Submissions time.Time
	// Keep, if set, saves a task from going whole. It is called on the
	// caller's goroutine.
	Keep func(TaskKey) bool
}

// Pruned counts what [Store.Prune] removed.
type Pruned struct {
	Records, Tasks, Submissions int64
}

// Footprint is what a tenant keeps in a store.
type Footprint struct {
	// Bytes of messages, logs, histories, states, records, values and blobs, as
	// they are stored.
	Bytes int64
	Tasks int64
	// Made counts the rows that were made on Day, a number of days of UTC since
	// 1970: that of the newest step.
	Day, Made int64
	// Spend is what the calls of models have cost on Day, as their entries tell.
	Spend
}

// Step is one atomic change of one task.
type Step struct {
	// Task replaces the task's record; Task.Key names the task.
	Task Task
	// Consume deletes rows by number.
	Consume []int64
	// Insert adds rows.
	Insert []Row
	// Stash flags, and Unstash unflags, every row of the task that the step
	// does not consume or insert. At most one of them is set.
	Stash, Unstash bool
	Events         []Event
	History        []AgentEntry
	States         []AgentState
	Answers        []Answered
	// Letters are added to the task's outbox, or replace those of their numbers;
	// Sent are the numbers of those that leave it, which need not be there.
	Letters []Letter
	Sent    []int64
	// Record is what is not journaled yet of the turn that makes this step.
	Record *Record
	KV     []KVWrite
	Blobs  []Blob
}

// AgentEntry is a history entry of one agent.
type AgentEntry struct {
	Agent string
	Entry abi.HistoryEntry
}

// AgentState is the state one agent keeps in one task; nil clears it.
type AgentState struct {
	Agent string
	State json.RawMessage
}

// Answered records the event that answers a submission.
type Answered struct {
	Door, Key string
	Cursor    int64
}

// Submission is one accepted post, findable by its key until it expires.
type Submission struct {
	Instance InstanceKey
	Door     string
	Key      string
	// Digest tells a repeat from another body under the same key.
	Digest  []byte
	Task    string
	Row     int64
	Cursor  int64 // of the post's own new_message event
	Expires time.Time
	// Answer is the cursor of the event that answers it, 0 before.
	Answer int64
}

// Claimed is a running task of an earlier host, with how many rows it has in its
// queue.
type Claimed struct {
	TaskKey
	Waiting int
}

// Snapshot is what a host needs to take a task up.
type Snapshot struct {
	Task Task
	Rows []Row
	// Posts are the submissions of the task that have no answer, in the order in
	// which they came. A step adds the one it is accepted with, and takes away
	// those it answers; so does a later post of any task that takes the key of
	// one which has expired.
	Posts  []Pending
	States map[string]json.RawMessage
	// Letters are those that are not dead, in the order of N.
	Letters []Letter
}

// Executor runs turns. Execute is called from many goroutines at once, at most
// once at a time for one (task, agent). It returns soon after ctx ends;
// context.Cause(ctx) says why.
type Executor interface {
	Execute(ctx context.Context, t *Turn) Outcome
}

// Outcome is how a turn ended. A nil Failure means ok; only then do the turn's
// staged effects and Result count. Usage counts always.
type Outcome struct {
	Result  abi.TurnResult
	Usage   Usage
	Failure *Failure
	// Record is what the turn has not made durable of its record: the header,
	// unless that is, entries, and the end without its time.
	Record *Record
	// Suspended are the calls that a turn waits for and only people can answer;
	// it goes on when they have. Its record has no end.
	Suspended []Ask
}

// Failure is why a turn did not end well, in words for operators and agents.
type Failure struct {
	// Cause is a short word: trap, fuel, cpu, deadline, stack, output …
	Cause string
	// Limit is the TOML key of the limit that was hit, if one was.
	Limit   string
	Message string
}

// Forwarder takes messages for agents of other swarms. Its methods return at once
// and are safe for concurrent use.
type Forwarder interface {
	// Check says why a message for the swarm cannot be taken, or nil.
	Check(ctx context.Context, from InstanceKey, swarm string) error
	// Wake says that an outbox has letters. It may be called for no reason, and
	// must not call the runtime before it returns.
	Wake(box Outbox)
}

// Closed is the [Forwarder] of a host without peers.
type Closed struct{}

// Check refuses every swarm.
func (Closed) Check(_ context.Context, _ InstanceKey, swarm string) error {
	return errors.New("no peer \"" + swarm + "\": this host has no peers configured")
}

// Wake does nothing: there are no letters.
func (Closed) Wake(Outbox) {}
