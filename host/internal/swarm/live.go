package swarm

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"skep/abi"
)

// live is a task in memory: its committed record, its queue, and the turns
// that run. Locks are taken in the order commit, mu; see host/LOCKS.md.
type live struct {
	key TaskKey
	// def is what the task goes by: from its begin to its end the same one. It is
	// changed under commit and mu.
	def *Definition

	// commit serialises the steps of the task and is held while one is
	// written. Only its holder changes what a step changes.
	commit sync.Mutex

	mu     sync.Mutex
	loaded bool
	exists bool
	rec    Task
	queue  map[string]*rowHeap
	// later are rows whose time has not come.
	later []Row
	stash []Row
	// letters are those of the outbox that are not dead, in the order of N.
	letters []Letter
	// queued is the tier of the claim each agent has in the schedule.
	queued  map[string]int
	running map[string]*run
	states  map[string]json.RawMessage
	tails   map[string][]abi.HistoryEntry
	waiters map[int64][]chan Answer
	posts   posts
	// changed is closed and replaced whenever the record changes.
	changed chan struct{}
	air     air

	// counted is what the task adds to its instance's load. A running task
	// is also one of its own holders.
	counted load

	// refs counts the holders, of which the task itself is one when it is held,
	// and taken how often there was a new one. They are guarded by Runtime.mu.
	refs  int
	held  bool
	taken uint64
}

// run is one turn in progress.
type run struct {
	row     Row
	def     *Definition
	cancel  context.CancelCauseFunc
	counted bool
	// killed says that the task ended under the turn: nothing it did
	// counts, and its row is in the task's stash.
	killed bool
	// interrupted is closed when an interrupt waits for which the turn should
	// make room; preempted says that it is.
	interrupted chan struct{}
	preempted   bool
	// timers counts those that the turn has set, less those it has cancelled.
	timers int
	// spent is what the turn's calls of models have cost, on all attempts, with
	// what is reserved for those under way.
	spent Spend
}

func newLive(key TaskKey, def *Definition) *live {
	return &live{
		key: key, def: def,
		queue: map[string]*rowHeap{}, queued: map[string]int{}, running: map[string]*run{},
		states: map[string]json.RawMessage{}, tails: map[string][]abi.HistoryEntry{},
		waiters: map[int64][]chan Answer{}, changed: make(chan struct{}),
		posts: posts{waiting: map[int64]Pending{}},
	}
}

// adopt fills a task from what the store has.
func (t *live) adopt(snap Snapshot) {
	t.exists, t.rec = true, snap.Task
	if t.rec.History == nil {
		t.rec.History = map[string]int64{}
	}
	for _, row := range snap.Rows {
		row.Recorded = true
		_, row.Suspended = t.rec.breakpoint(row.N)
		t.enqueue(row)
	}
	t.letters = snap.Letters
	t.posts.adopt(snap)
	if snap.States != nil {
		t.states = snap.States
	}
}

// enqueue takes a row in. One with a time of its own waits for [live.ripen].
func (t *live) enqueue(row Row) {
	switch {
	case row.Stash:
		t.stash = append(t.stash, row)
	case !row.NotBefore.IsZero():
		t.later = append(t.later, row)
	default:
		t.push(row)
	}
}

func (t *live) push(row Row) {
	q := t.queue[row.Agent]
	if q == nil {
		q = &rowHeap{}
		t.queue[row.Agent] = q
	}
	heap.Push(q, row)
}

// pending counts the rows that still can make the task progress.
func (t *live) pending() int {
	n := len(t.running) + len(t.later)
	for _, q := range t.queue {
		n += q.Len()
	}
	return n
}

// stashAll moves every queued row out of the queue.
func (t *live) stashAll() {
	for agent, q := range t.queue {
		t.stash = append(t.stash, *q...)
		delete(t.queue, agent)
	}
	t.stash, t.later = append(t.stash, t.later...), nil
	for i := range t.stash {
		t.stash[i].Stash = true
	}
	slices.SortFunc(t.stash, func(a, b Row) int { return cmp.Compare(a.N, b.N) })
}

// unstashAll puts every stashed row back with its old tier and number.
func (t *live) unstashAll() {
	rows := t.stash
	t.stash = nil
	for _, row := range rows {
		row.Stash = false
		t.enqueue(row)
	}
}

// drop forgets rows that a step has consumed without running them.
func (t *live) drop(numbers []int64) {
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
	t.later = slices.DeleteFunc(t.later, gone)
	t.stash = slices.DeleteFunc(t.stash, gone)
}

// notify wakes everybody who follows the task.
func (t *live) notify() {
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
