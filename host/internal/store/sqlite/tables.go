package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"skep/host/internal/swarm"
)

// The writer remembers the numbers of this many tasks and instances.
const (
	knownTasks     = 4096
	knownInstances = 4096
)

// findSubmission serves the writer's duplicate check and readers alike.
const findSubmission = `SELECT s.digest, s.task, s.row, s.cursor, s.expires, s.answer
	FROM instances i CROSS JOIN submissions s ON s.iid = i.iid AND s.door = ? AND s.key = ?
	WHERE i.tenant = ? AND i.swarm = ? AND i.instance = ?`

// tables writes single entries. Only the writer uses it, inside a transaction.
type tables struct {
	// What is remembered saves lookups. Whoever rolls back calls forget.
	instances cache[swarm.InstanceKey, int64]
	tasks     cache[swarm.TaskKey, *taskRef]

	findInstance, addInstance              *sql.Stmt
	findTask, addTask, setTask, setBody    *sql.Stmt
	findAgent, addAgent, setState          *sql.Stmt
	addRow, deleteRow, stashRows           *sql.Stmt
	addEvent, addHistory                   *sql.Stmt
	addPost, findPost, setAnswer, delPosts *sql.Stmt
}

// taskRef is what the writer remembers of a task: its number, those of its
// agents, and the columns whose indexes need no writing while they stay as they
// are.
type taskRef struct {
	tid     int64
	state   swarm.State
	created int64
	agents  map[string]int64
}

func prepareTables(ctx context.Context, c *sql.Conn) (*tables, error) {
	t := &tables{
		instances: newCache[swarm.InstanceKey, int64](knownInstances),
		tasks:     newCache[swarm.TaskKey, *taskRef](knownTasks),
	}
	return t, prepare(ctx, c, t.texts())
}

func (t *tables) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&t.findInstance: "SELECT iid FROM instances WHERE tenant = ? AND swarm = ? AND instance = ?",
		&t.addInstance:  "INSERT INTO instances (tenant, swarm, instance) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		&t.findTask:     "SELECT tid, state, created FROM tasks WHERE iid = ? AND task = ?",
		&t.addTask:      "INSERT INTO tasks (iid, task, state, created, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		&t.setTask:      "UPDATE tasks SET state = ?, created = ?, body = ? WHERE tid = ?",
		&t.setBody:      "UPDATE tasks SET body = ? WHERE tid = ?",
		&t.findAgent:    "SELECT aid FROM agents WHERE tid = ? AND agent = ?",
		&t.addAgent:     "INSERT INTO agents (tid, agent) VALUES (?, ?) ON CONFLICT DO NOTHING",
		&t.setState:     "UPDATE agents SET state = ? WHERE aid = ?",
		&t.addRow:       "INSERT INTO queue (id, stash, body) VALUES (?, ?, ?)",
		&t.deleteRow:    "DELETE FROM queue WHERE id = ?",
		&t.stashRows:    "UPDATE queue SET stash = ?1 WHERE id BETWEEN ?2 AND ?3 AND stash <> ?1",
		&t.addEvent:     "INSERT INTO events (id, body) VALUES (?, ?)",
		&t.addHistory:   "INSERT INTO history (id, body) VALUES (?, ?)",
		// It changes no row when the key is taken.
		&t.addPost: `INSERT INTO submissions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
			ON CONFLICT DO UPDATE SET digest = ?4, task = ?5, row = ?6, cursor = ?7, expires = ?8, answer = ?9
			WHERE expires <= ?10`,
		&t.findPost: findSubmission,
		// The task is part of it because an expired key may have been taken
		// anew by a post to another one.
		&t.setAnswer: "UPDATE submissions SET answer = ? WHERE iid = ? AND door = ? AND key = ? AND task = ?",
		&t.delPosts: `DELETE FROM submissions WHERE (iid, door, key) IN (
			SELECT iid, door, key FROM submissions WHERE answer > 0 AND expires <= ? LIMIT ?)`,
	}
}

// forget drops what may have been undone.
func (t *tables) forget() {
	t.instances.clear()
	t.tasks.clear()
}

// insert adds an entry and returns its number, 0 if it is there already.
func insert(ctx context.Context, stmt *sql.Stmt, args ...any) (int64, error) {
	r, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); n == 0 || err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// number returns the number of an entry, adding it at its first use. Adding
// comes first because what is used again is mostly remembered.
func number(ctx context.Context, add, find *sql.Stmt, args ...any) (id int64, err error) {
	if id, err = insert(ctx, add, args...); id != 0 || err != nil {
		return id, err
	}
	err = find.QueryRowContext(ctx, args...).Scan(&id)
	return id, err
}

func (t *tables) instance(ctx context.Context, k swarm.InstanceKey) (int64, error) {
	if iid, ok := t.instances.get(k); ok {
		return iid, nil
	}
	iid, err := number(ctx, t.addInstance, t.findInstance, instanceArgs(k)...)
	if err != nil {
		return 0, err
	}
	t.instances.put(k, iid)
	return iid, nil
}

// putTask writes a task's record and returns what to remember of the task.
func (t *tables) putTask(ctx context.Context, iid int64, s *step) (*taskRef, error) {
	if ref, ok := t.tasks.get(s.key); ok {
		return ref, t.replaceTask(ctx, ref, s)
	}
	tid, err := insert(ctx, t.addTask, iid, []byte(s.key.Task), string(s.state), s.created, s.body)
	if err != nil {
		return nil, err
	}
	ref := &taskRef{tid, s.state, s.created, make(map[string]int64)}
	if tid == 0 {
		var state string
		err = t.findTask.QueryRowContext(ctx, iid, []byte(s.key.Task)).Scan(&ref.tid, &state, &ref.created)
		if err != nil {
			return nil, err
		}
		ref.state = swarm.State(state)
		err = t.replaceTask(ctx, ref, s)
	}
	t.tasks.put(s.key, ref)
	return ref, errors.Join(err, checkParent(ref.tid))
}

func (t *tables) replaceTask(ctx context.Context, ref *taskRef, s *step) (err error) {
	if ref.state == s.state && ref.created == s.created {
		_, err = t.setBody.ExecContext(ctx, s.body, ref.tid)
		return err
	}
	ref.state, ref.created = s.state, s.created
	_, err = t.setTask.ExecContext(ctx, string(s.state), s.created, s.body, ref.tid)
	return err
}

// agent returns the number of an agent in a task.
func (t *tables) agent(ctx context.Context, ref *taskRef, agent string) (int64, error) {
	if aid, ok := ref.agents[agent]; ok {
		return aid, nil
	}
	aid, err := number(ctx, t.addAgent, t.findAgent, ref.tid, []byte(agent))
	if err != nil {
		return 0, err
	}
	ref.agents[agent] = aid
	return aid, checkParent(aid)
}

// putPost records a submission, unless its key is taken until after now.
func (t *tables) putPost(ctx context.Context, iid int64, p *swarm.Submission, now int64) (recorded bool, err error) {
	r, err := t.addPost.ExecContext(ctx, iid, []byte(p.Door), []byte(p.Key), p.Digest,
		[]byte(p.Task), p.Row, p.Cursor, stamp(p.Expires), p.Answer, now)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// post returns the submission that holds a key.
func (t *tables) post(ctx context.Context, k swarm.InstanceKey, door, key string) (swarm.Submission, error) {
	return scanSubmission(t.findPost.QueryRowContext(ctx, submissionArgs(k, door, key)...), k, door, key)
}

func instanceArgs(k swarm.InstanceKey) []any {
	return []any{[]byte(k.Tenant), []byte(k.Swarm), []byte(k.Instance)}
}

func taskArgs(k swarm.TaskKey) []any {
	return append(instanceArgs(k.InstanceKey), []byte(k.Task))
}

func submissionArgs(k swarm.InstanceKey, door, key string) []any {
	return append([]any{[]byte(door), []byte(key)}, instanceArgs(k)...)
}

// scanSubmission reads what findSubmission selects.
func scanSubmission(row *sql.Row, k swarm.InstanceKey, door, key string) (swarm.Submission, error) {
	p := swarm.Submission{Instance: k, Door: door, Key: key}
	var task []byte
	var expires int64
	err := row.Scan(&p.Digest, &task, &p.Row, &p.Cursor, &expires, &p.Answer)
	if errors.Is(err, sql.ErrNoRows) {
		return swarm.Submission{}, swarm.ErrNotFound
	}
	if err != nil {
		return swarm.Submission{}, err
	}
	p.Task, p.Expires = string(task), unstamp(expires)
	return p, nil
}
