package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"skep/host/internal/swarm"
)

// taskRef is what the writer remembers of a task: its number, its agents'
// numbers, the columns whose indexes need no writing while they stay as they
// are, and how large its record is.
type taskRef struct {
	tid     int64
	state   swarm.State
	created int64
	ended   sql.NullInt64
	oldest  sql.NullInt64
	size    int64
	// entrypoint and microUSD are columns by which tasks are listed.
	entrypoint string
	microUSD   int64
	agents     map[string]*agentRef
	// rows holds the sizes of rows that were written since the task is
	// remembered. Asking the engine when they go costs as much as deleting them.
	rows map[int64]int64
	// turns are the turns that have not ended, as far as they are remembered.
	turns map[int64]*turnRef
	// added: the writer has added the task, so that it remembers all of its agents.
	added bool
}

func newTaskRef() *taskRef {
	return &taskRef{agents: make(map[string]*agentRef), rows: make(map[int64]int64), turns: make(map[int64]*turnRef)}
}

// turnRef is the number of a turn's journal and its last entry there.
type turnRef struct{ jid, last int64 }

// agentRef is an agent's number in a task and the size of its state.
type agentRef struct{ aid, size int64 }

// writeTask writes a task's record and returns what to remember of the task.
func (t *tables) writeTask(ctx context.Context, iid int64, s *encodedMutation) (*taskRef, error) {
	ref, err := t.addedTask(ctx, iid, s)
	if ref != nil || err != nil {
		return ref, err
	}
	if ref, err = t.task(ctx, iid, s.key); err != nil {
		return nil, err
	}
	return ref, t.replaceTask(ctx, ref, s)
}

// addedTask adds a task, and returns nil for one that may be there. Without a submission it
// mostly is.
func (t *tables) addedTask(ctx context.Context, iid int64, s *encodedMutation) (*taskRef, error) {
	if _, ok := t.tasks.get(s.key); ok || t.waiting && len(s.posts) == 0 {
		return nil, nil
	}
	ref := newTaskRef()
	ref.state, ref.created, ref.ended, ref.oldest, ref.size = s.state, s.created, s.ended(), s.turnEnd(), int64(len(s.body))
	ref.entrypoint, ref.microUSD = s.entrypoint, s.microUSD
	ref.added = true
	tid, err := t.insert(ctx, t.addTask, iid, []byte(s.key.Task), string(s.state), s.created, ref.ended, ref.oldest, s.definition, s.body,
		[]byte(s.key.Tenant), []byte(s.entrypoint), s.microUSD)
	if tid == 0 || err != nil {
		return nil, err
	}
	ref.tid = tid
	t.delta.add(s.key.Tenant, ref.size, 1)
	t.tasks.put(s.key, ref)
	return ref, checkParent(tid)
}

// task returns what to remember of a task that exists.
func (t *tables) task(ctx context.Context, iid int64, key swarm.TaskKey) (*taskRef, error) {
	if ref, ok := t.tasks.get(key); ok {
		return ref, nil
	}
	ref := newTaskRef()
	var state string
	var entrypoint []byte
	err := t.findTask.QueryRowContext(ctx, iid, []byte(key.Task)).Scan(
		&ref.tid, &state, &ref.created, &ref.ended, &ref.oldest, &ref.size, &entrypoint, &ref.microUSD)
	if errors.Is(err, sql.ErrNoRows) {
		err = refuse(swarm.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	ref.state, ref.entrypoint = swarm.State(state), string(entrypoint)
	t.tasks.put(key, ref)
	return ref, nil
}

func (t *tables) replaceTask(ctx context.Context, ref *taskRef, s *encodedMutation) (err error) {
	if ref.created != s.created || ref.entrypoint != s.entrypoint || ref.microUSD != s.microUSD {
		ref.created, ref.entrypoint, ref.microUSD = s.created, s.entrypoint, s.microUSD
		if _, err := t.setFacts.ExecContext(ctx, s.created, []byte(s.entrypoint), s.microUSD, ref.tid); err != nil {
			return err
		}
	}
	t.delta.add(s.key.Tenant, int64(len(s.body))-ref.size, 0)
	ref.size = int64(len(s.body))
	firstTurn := !ref.oldest.Valid && s.turnEnd().Valid
	if ref.state == s.state && !firstTurn {
		_, err = t.setBody.ExecContext(ctx, s.body, ref.tid)
		return err
	}
	ref.state, ref.ended = s.state, s.ended()
	if firstTurn {
		ref.oldest = s.turnEnd()
	}
	_, err = t.setTask.ExecContext(ctx, string(s.state), ref.ended, ref.oldest, s.definition, s.body, ref.tid)
	return err
}

// agent returns an agent of a task, adding it at its first use.
func (t *tables) agent(ctx context.Context, ref *taskRef, agent string) (*agentRef, error) {
	if a, ok := ref.agents[agent]; ok {
		return a, nil
	}
	if !ref.added {
		a, err := t.storedAgent(ctx, ref, agent)
		if !errors.Is(err, sql.ErrNoRows) {
			return a, err
		}
	}
	r, err := t.addAgent.ExecContext(ctx, ref.tid, []byte(agent))
	if err != nil {
		return nil, err
	}
	a := &agentRef{}
	if a.aid, err = r.LastInsertId(); err != nil {
		return nil, err
	}
	ref.agents[agent] = a
	return a, checkParent(a.aid)
}

// storedAgent returns an agent that the task has, or [sql.ErrNoRows].
func (t *tables) storedAgent(ctx context.Context, ref *taskRef, agent string) (*agentRef, error) {
	a := &agentRef{}
	if err := t.findAgent.QueryRowContext(ctx, ref.tid, []byte(agent)).Scan(&a.aid, &a.size); err != nil {
		return nil, err
	}
	ref.agents[agent] = a
	return a, checkParent(a.aid)
}

// consumeRow deletes a row, which need not be there, and returns its size.
func (t *tables) consumeRow(ctx context.Context, ref *taskRef, n int64) (size int64, err error) {
	size, ok := ref.rows[n]
	if ok {
		delete(ref.rows, n)
		_, err = t.deleteRow.ExecContext(ctx, pack(ref.tid, n))
		return size, err
	}
	err = t.dropRow.QueryRowContext(ctx, pack(ref.tid, n)).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return size, err
}
