package swarm

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"skep/abi"
)

// activeTask is a task in memory: its committed record, its queue, and its running
// turns. Locks are taken in the order commit, mu; see host/LOCKS.md.
type activeTask struct {
	key TaskKey
	// def is the definition of the task, the same from its begin to its end. It is
	// changed under commit and mu.
	def    *Definition
	traces *traces
	// questionNotices is [Options].QuestionNotices.
	questionNotices bool

	// commit serialises the mutations of the task and is held while one is written.
	// Only its holder changes what a mutation changes.
	commit commitLock

	mu     sync.Mutex
	loaded bool
	exists bool
	// erased is set when the task was dropped in memory because its tenant is erased.
	erased bool
	// moved is set when the task was dropped because another host works on it.
	moved bool
	rec   Task
	queue map[string]*rowHeap
	// delayed are rows whose time has not come.
	delayed []Row
	stash   []Row
	// outbox are the outbox messages that are not dead, in the order of N.
	outbox []OutboxMessage
	// claimedTiers is the tier of each agent's claim that waits for a slot.
	claimedTiers map[string]int
	running      map[string]*runningTurn
	states       map[string]json.RawMessage
	tails        map[string][]abi.HistoryEntry
	waiters      map[PendingPost][]chan Answer
	openPosts    openPosts
	// changed is closed and replaced whenever the record changes.
	changed  chan struct{}
	volatile volatileBuffer

	// counted is the task's part of its instance's load. A running task is also one of
	// its own holders.
	counted load

	// holders counts the reasons to keep the task in memory. Two of them are selfHeld, the task is
	// running, and outboxHeld, see [Runtime.holdForOutbox]. holdGeneration changes whenever a holder
	// is added. Runtime.mu guards them.
	holders              int
	selfHeld, outboxHeld bool
	holdGeneration       uint64
}

// commitLock is a mutex that is held while the store writes. Waiters get it in the order
// in which they came, and a goroutine that waits for it counts as blocked where time is
// simulated (https://pkg.go.dev/testing/synctest).
type commitLock chan struct{}

func (l commitLock) Lock()   { l <- struct{}{} }
func (l commitLock) Unlock() { <-l }

// runningTurn is one turn in progress.
type runningTurn struct {
	row     Row
	def     *Definition
	cancel  context.CancelCauseFunc
	counted bool
	// killed is set when the task ended under the turn: nothing it did counts, and its
	// row is in the task's stash, or is void.
	killed bool
	// void is set when the row is void.
	void bool
	// dropped is set when the task was erased under the turn.
	dropped bool
	// interrupted is closed when the turn should make room for an interrupt; preempted
	// is set then.
	interrupted chan struct{}
	preempted   bool
	// timers counts the timers that the turn has set, less those it has cancelled.
	timers int
	// spent is the cost of the turn's model calls on all attempts, with the reserved
	// cost of unfinished calls.
	spent Spend
	// spentOn is spent by model.
	spentOn map[string]Spend
	// exceeded are the keys of budgets in which calls of models did not fit.
	exceeded []string
	models   []string // that the turn calls, by the providers' names
	emitted  emitState
	// modelFailures are the calls of models that have failed, by model and kind, the last one last.
	modelFailures []ModelFailure
}

func newActiveTask(key TaskKey, def *Definition) *activeTask {
	return &activeTask{
		key: key, def: def, commit: make(commitLock, 1),
		queue: map[string]*rowHeap{}, claimedTiers: map[string]int{}, running: map[string]*runningTurn{},
		states: map[string]json.RawMessage{}, tails: map[string][]abi.HistoryEntry{},
		waiters: map[PendingPost][]chan Answer{}, changed: make(chan struct{}),
		openPosts: openPosts{waiting: map[int64]PendingPost{}},
	}
}

// fillFromSnapshot fills a task from the store.
func (t *activeTask) fillFromSnapshot(snap Snapshot) {
	t.exists, t.rec = true, snap.Task
	if t.rec.History == nil {
		t.rec.History = map[string]int64{}
	}
	for _, row := range snap.Rows {
		row.MayHaveRecord = true
		_, row.Suspended = t.rec.findBreakpoint(row.N)
		t.enqueueRow(row)
	}
	t.outbox = snap.Outbox
	t.openPosts.fillFromSnapshot(snap)
	if snap.States != nil {
		t.states = snap.States
	}
}

// enqueueRow adds a row. A row with NotBefore waits for [activeTask.queueDueRows].
func (t *activeTask) enqueueRow(row Row) {
	switch {
	case row.Stash:
		t.stash = append(t.stash, row)
	case !row.NotBefore.IsZero():
		t.delayed = append(t.delayed, row)
	default:
		t.pushRow(row)
	}
}

func (t *activeTask) pushRow(row Row) {
	q := t.queue[row.Agent]
	if q == nil {
		q = &rowHeap{}
		t.queue[row.Agent] = q
	}
	heap.Push(q, row)
}

// countPending counts the rows that can still make the task progress. The row of a turn
// that was killed is in the stash, waits again, or is void.
func (t *activeTask) countPending() int {
	n := len(t.delayed)
	for _, rn := range t.running {
		if !rn.killed {
			n++
		}
	}
	for _, q := range t.queue {
		n += q.Len()
	}
	return n
}

// stashRows moves every queued row out of the queue.
func (t *activeTask) stashRows() {
	for agent, q := range t.queue {
		t.stash = append(t.stash, *q...)
		delete(t.queue, agent)
	}
	t.stash, t.delayed = append(t.stash, t.delayed...), nil
	for i := range t.stash {
		t.stash[i].Stash = true
	}
	slices.SortFunc(t.stash, func(a, b Row) int { return cmp.Compare(a.N, b.N) })
}

// unstashRows puts every stashed row back with its old tier and number.
func (t *activeTask) unstashRows(now time.Time) {
	rows := t.stash
	t.stash = nil
	for _, row := range rows {
		row.Stash, row.QueuedAt = false, now
		t.enqueueRow(row)
	}
}

// dropRows removes rows that a mutation has consumed without a turn.
func (t *activeTask) dropRows(numbers []int64) {
	if len(numbers) == 0 {
		return
	}
	gone := func(row Row) bool { return slices.Contains(numbers, row.N) }
	for agent, q := range t.queue {
		if slices.ContainsFunc(*q, gone) {
			kept := rowHeap(slices.DeleteFunc(slices.Clone(*q), gone))
			heap.Init(&kept)
			t.queue[agent] = &kept
		}
	}
	t.delayed = slices.DeleteFunc(t.delayed, gone)
	t.stash = slices.DeleteFunc(t.stash, gone)
}

// notifyFollowers wakes all readers of the task's log.
func (t *activeTask) notifyFollowers() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// rowHeap orders rows by tier, then by number (S-03, S-04).
type rowHeap []Row

func (h rowHeap) Len() int      { return len(h) }
func (h rowHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *rowHeap) Push(x any)   { *h = append(*h, x.(Row)) }
func (h rowHeap) Less(i, j int) bool {
	if h[i].Suspended != h[j].Suspended {
		return h[i].Suspended // a turn that was begun goes on before others begin
	}
	if h[i].Tier != h[j].Tier {
		return h[i].Tier < h[j].Tier
	}
	return h[i].N < h[j].N
}

func (h *rowHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = Row{}
	*h = old[:len(old)-1]
	return last
}
