package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

// Load implements [swarm.TaskLog].
func (s *Store) Load(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	st, err := reread(ctx, s.readers.patience, func(ctx context.Context, answered func()) (stored, error) {
		return s.readers.load(ctx, answered, key)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return swarm.Snapshot{}, wrapError("load task", key.Task, err)
	}
	snap, err := st.decode(s.opener(key))
	return snap, wrapError("load task", key.Task, err)
}

// stored is a [swarm.Snapshot] as it is kept.
type stored struct {
	task   []byte
	rows   []row
	states []agentState
	posts  []swarm.PendingPost
	outbox []entry
}

// load reads the parts of a snapshot in one transaction, which makes them
// belong together.
func (r *readers) load(ctx context.Context, answered func(), key swarm.TaskKey) (st stored, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	answered()
	if err != nil {
		return st, err
	}
	defer tx.Rollback() // it only reads
	var iid, tid int64
	if err := tx.StmtContext(ctx, r.task).QueryRowContext(ctx, taskArgs(key)...).Scan(&iid, &tid, &st.task); err != nil {
		return st, err
	}
	rows, err := tx.StmtContext(ctx, r.rows).QueryContext(ctx, pack(tid, 0), pack(tid, maxSeq))
	if st.rows, err = collect(rows, err, scanRow); err != nil {
		return st, err
	}
	rows, err = tx.StmtContext(ctx, r.states).QueryContext(ctx, tid)
	if st.states, err = collect(rows, err, scanState); err != nil {
		return st, err
	}
	rows, err = tx.StmtContext(ctx, r.posts).QueryContext(ctx, iid, []byte(key.Task))
	if st.posts, err = collect(rows, err, scanPending); err != nil {
		return st, err
	}
	rows, err = tx.StmtContext(ctx, r.outboxMessages).QueryContext(ctx, pack(tid, 0), pack(tid, maxSeq))
	st.outbox, err = collect(rows, err, scanEntry)
	return st, err
}

// LoadQueue implements [swarm.TaskLog].
func (s *Store) LoadQueue(ctx context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	kept, err := readRows(ctx, s.readers.query(s.readers.taskQueue, append(taskArgs(key), taskArgs(key)...)...), scanRow)
	slices.SortFunc(kept, func(a, b row) int { return cmp.Compare(a.seq, b.seq) })
	if err == nil && len(kept) == 0 {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return swarm.Snapshot{}, wrapError("load task", key.Task, err)
	}
	snap, err := stored{task: kept[0].body, rows: kept[1:]}.decode(s.opener(key))
	return snap, wrapError("load task", key.Task, err)
}

func scanRow(rows *sql.Rows) (r row, err error) {
	err = rows.Scan(&r.seq, &r.stash, &r.body)
	r.seq = seqOf(r.seq)
	return r, err
}

func scanState(rows *sql.Rows) (as agentState, err error) {
	var agent []byte
	err = rows.Scan(&agent, &as.body)
	as.agent = string(agent)
	return as, err
}

func scanPending(rows *sql.Rows) (p swarm.PendingPost, err error) {
	var door, key []byte
	var keep int64
	err = rows.Scan(&p.Row, &door, &key, &keep)
	p.Door, p.Key, p.Held = string(door), string(key), keep > 0
	return p, err
}

func (st stored) decode(o opener) (snap swarm.Snapshot, err error) {
	snap.Posts = st.posts
	if err := o.read(st.task, spot{inTasks, "", 0}, &snap.Task); err != nil {
		return swarm.Snapshot{}, err
	}
	if snap.Rows, err = decodeAll(st.rows, nil, o.readRow); err != nil {
		return swarm.Snapshot{}, err
	}
	if snap.Outbox, err = decodeAll(st.outbox, nil, o.readOutboxMessage); err != nil {
		return swarm.Snapshot{}, err
	}
	snap.States = make(map[string]json.RawMessage, len(st.states))
	for _, as := range st.states {
		if snap.States[as.agent], err = o.open(as.body, spot{inStates, as.agent, 0}); err != nil {
			return swarm.Snapshot{}, err
		}
	}
	return snap, nil
}

// RunningTasks implements [swarm.TaskLog]. The directory's lock makes every task ours,
// so nothing needs to be written.
func (s *Store) RunningTasks(ctx context.Context) ([]swarm.RunningTask, error) {
	found, err := readRows(ctx, s.readers.query(s.readers.runningTasks), func(rows *sql.Rows) (c swarm.RunningTask, err error) {
		var tenant, name, instance, task []byte
		err = rows.Scan(&tenant, &name, &instance, &task, &c.Waiting)
		c.InstanceKey = swarm.InstanceKey{Tenant: string(tenant), Swarm: string(name), Instance: string(instance)}
		c.Task = string(task)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("claim running tasks: %w", addAdvice(err))
	}
	return found, nil
}

// storedTask is the stored record of a task.
type storedTask struct {
	id      string
	created int64
	body    []byte
}

// Tasks implements [swarm.TaskLog].
func (s *Store) Tasks(ctx context.Context, key swarm.InstanceKey, before time.Time, limit int) (tasks []swarm.Task, err error) {
	to := int64(math.MaxInt64)
	if !before.IsZero() {
		to = stamp(before)
	}
	for limit > len(tasks) {
		kept, err := s.storedTasks(ctx, key, to, limit-len(tasks))
		if err != nil || len(kept) == 0 {
			return tasks, wrapError("list tasks of", key.Instance, err)
		}
		more, err := decodeReadable(s.log, kept, func(e storedTask) (task swarm.Task, err error) {
			o := s.opener(swarm.TaskKey{InstanceKey: key, Task: e.id})
			err = o.read(e.body, spot{inTasks, "", 0}, &task)
			return task, wrapError("read task", key.Tenant+" "+key.Instance+" "+e.id, err)
		})
		if err != nil {
			return nil, wrapError("list tasks of", key.Instance, err)
		}
		tasks, to = append(tasks, more...), kept[len(kept)-1].created
		if len(more) == len(kept) {
			break
		}
	}
	return tasks, nil
}

func (s *Store) storedTasks(ctx context.Context, key swarm.InstanceKey, before int64, limit int) ([]storedTask, error) {
	return readRows(ctx, s.readers.query(s.readers.tasks, append(instanceArgs(key), before, limit)...), func(rows *sql.Rows) (e storedTask, err error) {
		var id []byte
		err = rows.Scan(&id, &e.body, &e.created)
		e.id = string(id)
		return e, err
	})
}

// Instances implements [swarm.TaskLog].
func (s *Store) Instances(ctx context.Context, tenant, name string) ([]swarm.InstanceKey, error) {
	keys, err := readRows(ctx, s.readers.query(s.readers.instances, []byte(tenant), []byte(name)), func(rows *sql.Rows) (swarm.InstanceKey, error) {
		var instance []byte
		err := rows.Scan(&instance)
		return swarm.InstanceKey{Tenant: tenant, Swarm: name, Instance: string(instance)}, err
	})
	return keys, wrapError("list instances of swarm", name, err)
}

// Events implements [swarm.TaskLog].
func (s *Store) Events(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Event, error) {
	q := s.readers.query(s.readers.events, append(taskArgs(key), clampSeq(after), max(limit, 0))...)
	kept, err := readRowsUntil(ctx, q, scanPage)
	o := s.opener(key)
	events, err := decodeAll(kept, err, o.readEvent)
	return events, wrapError("read events of task", key.Task, err)
}

// History implements [swarm.TaskLog].
func (s *Store) History(ctx context.Context, key swarm.TaskKey, agent string, after int64, limit int) ([]abi.HistoryEntry, error) {
	q := s.readers.query(s.readers.history, append(taskArgs(key), []byte(agent), clampSeq(after), max(limit, 0))...)
	kept, err := readRowsUntil(ctx, q, scanPage)
	entries, err := decodeAll(kept, err, readAs[abi.HistoryEntry](s.opener(key), inHistory, agent))
	return entries, wrapError("read history of task", key.Task, err)
}

// HistoryTail implements [swarm.TaskLog]. It reads backwards and stops at either
// bound, so that its cost does not depend on the length of the history.
func (s *Store) HistoryTail(ctx context.Context, key swarm.TaskKey, agent string, entries, bytes int) ([]abi.HistoryEntry, error) {
	q := s.readers.query(s.readers.historyTail, append(taskArgs(key), []byte(agent), 0, max(entries, 0))...)
	kept, err := readRowsUntil(ctx, q, func() func(*sql.Rows) (entry, bool, error) {
		left := bytes
		return func(rows *sql.Rows) (e entry, more bool, err error) {
			e, err = scanEntry(rows)
			left -= contentSize(e.body)
			return e, left >= 0, err
		}
	})
	slices.Reverse(kept)
	tail, err := decodeAll(kept, err, readAs[abi.HistoryEntry](s.opener(key), inHistory, agent))
	return tail, wrapError("read history of task", key.Task, err)
}

// scanPage reads entries until they exceed a page's bytes; the first always
// belongs to the page.
func scanPage() func(*sql.Rows) (entry, bool, error) {
	left, first := swarm.PageBytes, true
	return func(rows *sql.Rows) (entry, bool, error) {
		e, err := scanEntry(rows)
		left -= contentSize(e.body)
		more := first || left >= 0
		first = false
		return e, more, err
	}
}

// Submission implements [swarm.TaskLog].
func (s *Store) Submission(ctx context.Context, key swarm.InstanceKey, door, id string) (swarm.Submission, error) {
	q := s.readers.query(s.readers.submission, submissionArgs(key, door, id)...)
	p, err := readFirst(ctx, q, func(rows *sql.Rows) (swarm.Submission, error) { return scanSubmission(rows, key, door) })
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err == nil {
		err = s.openSubmission(&p)
	}
	return p, wrapError("find submission", id, err)
}

// Submissions implements [swarm.TaskLog].
func (s *Store) Submissions(ctx context.Context, key swarm.InstanceKey, door string, before swarm.Submission, limit int) ([]swarm.Submission, error) {
	accepted := int64(math.MaxInt64)
	if !before.Accepted.IsZero() {
		accepted = stamp(before.Accepted)
	}
	args := append([]any{[]byte(door), accepted, []byte(before.Key)}, instanceArgs(key)...)
	list, err := readRows(ctx, s.readers.query(s.readers.submissions, append(args, limit)...), func(rows *sql.Rows) (swarm.Submission, error) { return scanSubmission(rows, key, door) })
	for i := range list {
		if err == nil {
			err = s.openSubmission(&list[i])
		}
	}
	return list, wrapError("list submissions of", door, err)
}

// openSubmission replaces the bodies of a digest and of a note by what they hold.
func (s *Store) openSubmission(p *swarm.Submission) (err error) {
	o := s.opener(swarm.TaskKey{InstanceKey: p.Instance})
	if p.Digest != nil {
		p.Digest, err = o.open(p.Digest, submissionSpot(p.Door, p.Key))
	}
	if p.Note != nil && err == nil {
		p.Note, err = o.open(p.Note, noteSpot(p.Door, p.Key))
	}
	return err
}

// wrapError names what an error kept from being done; nil stays nil.
func wrapError(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", doing, name, addAdvice(err))
}
