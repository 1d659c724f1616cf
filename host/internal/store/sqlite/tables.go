package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// The writer remembers the numbers of this many tasks and instances.
const (
	knownTasks     = 4096
	knownInstances = 4096
)

// submissionColumns are what scanSubmission reads.
const submissionColumns = "s.key, s.digest, s.task, s.row, s.cursor, s.expires, s.answer, s.agent, s.accepted, s.keep, s.note"

const findSpace = "SELECT sid, keys, bytes FROM spaces WHERE iid = ? AND kind = ? AND tid = ? AND agent = ?"

// findSubmission serves the writer's duplicate check and readers alike.
const findSubmission = "SELECT " + submissionColumns + `
	FROM instances i CROSS JOIN submissions s ON s.iid = i.iid AND s.door = ? AND s.key = ?
	WHERE i.tenant = ? AND i.swarm = ? AND i.instance = ?`

// tables writes single entries. Only the writer uses it, inside a transaction.
type tables struct {
	conn *sql.Conn
	// What is remembered saves lookups. A rollback calls forgetCaches.
	instances cache[swarm.InstanceKey, int64]
	tasks     cache[swarm.TaskKey, *taskRef]
	keys      map[keyring.ID]bool
	// delta is what the group in hand adds to the counters of tenants.
	delta footprintDelta
	expectations
	// lastJID is the highest number given to a journal, reservedJID the highest that the
	// file does not give again after a restart.
	lastJID, reservedJID int64

	findInstance, addInstance              *sql.Stmt
	findTask, addTask, setTask, setBody    *sql.Stmt
	setFacts                               *sql.Stmt
	findAgent, addAgent, setState          *sql.Stmt
	addRow, deleteRow, dropRow             *sql.Stmt
	stashRows, unstashRows                 *sql.Stmt
	addEvent, addHistory                   *sql.Stmt
	addPost, findPost, setAnswer, delPosts *sql.Stmt
	addKey, addFootprint                   *sql.Stmt
	addTurn, findTurn, endTurn             *sql.Stmt
	addJournal, lastEntry, reserveJIDs     *sql.Stmt
	addSpace, findSpace, setSpace          *sql.Stmt
	findValue, setValue, delValue          *sql.Stmt
	reaping                                deleteStmts
	issued                                 tokenStmts
	defined                                definitionStmts
	posting                                outboxStmts
	blank                                  freePageStmts
	blobbing                               blobStmts
	gatewayState                           gatewayStateStmts
	confining                              quarantineStmts
	metering                               usageStmts
	// shared is nil where no other host writes.
	shared *sharedStmts
}

func prepareTables(ctx context.Context, c *sql.Conn, stmts preparer) (*tables, error) {
	t := &tables{
		conn:      c,
		instances: newCache[swarm.InstanceKey, int64](knownInstances),
		tasks:     newCache[swarm.TaskKey, *taskRef](knownTasks),
		keys:      map[keyring.ID]bool{},
	}
	if err := c.QueryRowContext(ctx, highestJID).Scan(&t.lastJID); err != nil {
		return nil, err
	}
	for _, texts := range t.allTexts() {
		if err := prepare(ctx, stmts, texts); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tables) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&t.findInstance: "SELECT iid FROM instances WHERE tenant = ? AND swarm = ? AND instance = ?",
		&t.addInstance:  "INSERT INTO instances (tenant, swarm, instance) VALUES (?, ?, ?) ON CONFLICT (tenant, swarm, instance) DO NOTHING",
		&t.findTask:     "SELECT tid, state, created, ended, oldest, length(body), entrypoint, micro_usd FROM tasks WHERE iid = ? AND task = ?",
		&t.addTask:      "INSERT INTO tasks (iid, task, state, created, ended, oldest, definition, body, tenant, entrypoint, micro_usd) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (iid, task) DO NOTHING",
		&t.reserveJIDs:  "INSERT INTO meta VALUES ('journals', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		// The indexes of what is set are written anew, so that what seldom changes is set apart.
		&t.setTask:   "UPDATE tasks SET state = ?, ended = ?, oldest = ?, definition = ?, body = ? WHERE tid = ?",
		&t.setFacts:  "UPDATE tasks SET created = ?, entrypoint = ?, micro_usd = ? WHERE tid = ?",
		&t.setBody:   "UPDATE tasks SET body = ? WHERE tid = ?",
		&t.findAgent: "SELECT aid, coalesce(length(state), 0) FROM agents WHERE tid = ? AND agent = ?",
		&t.addAgent:  "INSERT INTO agents (tid, agent) VALUES (?, ?)",
		&t.setState:  "UPDATE agents SET state = ? WHERE aid = ?",
		&t.addRow:    "INSERT INTO queue (id, stash, body) VALUES (?, ?, ?)",
		&t.deleteRow: "DELETE FROM queue WHERE id = ?",
		&t.dropRow:   "DELETE FROM queue WHERE id = ? RETURNING length(body)",
		&t.stashRows: "UPDATE queue SET stash = 1 WHERE id BETWEEN ? AND ? AND stash = 0",
		// Rows that wait are not looked at, however many there are.
		&t.unstashRows: "UPDATE queue INDEXED BY queue_stash SET stash = 0 WHERE id BETWEEN ? AND ? AND stash <> 0",
		&t.addEvent:    "INSERT INTO events (id, body) VALUES (?, ?)",
		&t.addHistory:  "INSERT INTO history (id, body) VALUES (?, ?)",
		// It changes no row when the key is taken.
		&t.addPost: `INSERT INTO submissions (iid, door, key, digest, task, row, cursor, expires, answer, agent, accepted, keep, note)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
			ON CONFLICT (iid, door, key) DO UPDATE SET digest = ?4, task = ?5, row = ?6, cursor = ?7, expires = ?8, answer = ?9,
			agent = ?10, accepted = ?11, keep = ?12, note = ?13 WHERE submissions.expires <= ?14`,
		&t.findPost: findSubmission,
		// The task is part of it because an expired key may have been taken
		// anew by a post to another one.
		&t.setAnswer: `UPDATE submissions SET answer = ?1, expires = CASE WHEN keep > 0 THEN ?2 + keep ELSE expires END
			WHERE iid = ?3 AND door = ?4 AND key = ?5 AND task = ?6`,
		&t.delPosts: `DELETE FROM submissions WHERE (iid, door, key) IN (
			SELECT iid, door, key FROM submissions WHERE answer > 0 AND expires <= ? LIMIT CAST(? AS BIGINT))`,
	}
}

// turnTexts are of records, values and what is counted by tenant.
func (t *tables) turnTexts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&t.addKey: "INSERT INTO keys VALUES (?, ?) ON CONFLICT DO NOTHING",
		&t.addFootprint: `INSERT INTO tenants AS t (tenant, bytes, tasks, day, made, tokens, micro_usd) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant) DO UPDATE SET bytes = t.bytes + excluded.bytes, tasks = t.tasks + excluded.tasks,
			tokens = max(0, CASE WHEN excluded.day > t.day THEN excluded.tokens WHEN excluded.day = t.day THEN t.tokens + excluded.tokens ELSE t.tokens END),
			micro_usd = max(0, CASE WHEN excluded.day > t.day THEN excluded.micro_usd WHEN excluded.day = t.day THEN t.micro_usd + excluded.micro_usd ELSE t.micro_usd END),
			made = CASE WHEN excluded.day > t.day THEN excluded.made WHEN excluded.day = t.day THEN t.made + excluded.made ELSE t.made END,
			day = max(t.day, excluded.day)`,
		&t.addTurn:    "INSERT INTO turns (id, at, jid, header, finish, input) VALUES (?, ?, ?, ?, ?, ?)",
		&t.findTurn:   "SELECT jid, at FROM turns WHERE id = ?",
		&t.endTurn:    "UPDATE turns SET at = ?, finish = ? WHERE id = ?",
		&t.addJournal: "INSERT INTO journal (id, body) VALUES (?, ?)",
		&t.lastEntry:  "SELECT coalesce(max(id), 0) FROM journal WHERE id BETWEEN ? AND ?",
		&t.addSpace: `INSERT INTO spaces (iid, kind, tid, agent, keys, bytes) VALUES (?, ?, ?, ?, 0, 0)
			ON CONFLICT (iid, kind, tid, agent) DO NOTHING`,
		&t.findSpace: findSpace,
		&t.setSpace:  "UPDATE spaces SET keys = ?, bytes = ? WHERE sid = ?",
		&t.findValue: "SELECT size, value FROM kv WHERE sid = ? AND name = ?",
		&t.setValue: `INSERT INTO kv VALUES (?, ?, ?, ?)
			ON CONFLICT (sid, name) DO UPDATE SET size = excluded.size, value = excluded.value`,
		&t.delValue: "DELETE FROM kv WHERE sid = ? AND name = ?",
	}
}

func (t *tables) allTexts() []map[**sql.Stmt]string {
	return []map[**sql.Stmt]string{
		t.texts(), t.turnTexts(), t.reaping.texts(), t.issued.texts(), t.defined.texts(), t.posting.texts(), t.blobbing.texts(), t.gatewayState.texts(), t.confining.texts(), t.metering.texts(),
	}
}

// forgetCaches drops what may have been undone.
func (t *tables) forgetCaches() {
	t.instances.clear()
	t.tasks.clear()
	clear(t.keys)
	t.reservedJID = 0
}

// insert adds an entry and returns its number, 0 if it is there already.
func (t *tables) insert(ctx context.Context, stmt *sql.Stmt, args ...any) (int64, error) {
	r, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	if changed, err := t.changes(r); !changed || err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// number returns the number of the entry that has a key, adding it with the rest at its first
// use. Where an answer costs no more than its statement, adding comes first: what is used again
// is mostly remembered.
func (t *tables) number(ctx context.Context, add, find *sql.Stmt, key []any, rest ...any) (id int64, added bool, err error) {
	if t.waiting {
		err = find.QueryRowContext(ctx, key...).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return id, false, err
		}
	}
	if id, err = t.insert(ctx, add, append(key, rest...)...); id != 0 || err != nil {
		return id, true, err
	}
	err = find.QueryRowContext(ctx, key...).Scan(&id)
	return id, false, err
}

func (t *tables) instance(ctx context.Context, k swarm.InstanceKey) (int64, error) {
	if iid, ok := t.instances.get(k); ok {
		return iid, nil
	}
	iid, _, err := t.number(ctx, t.addInstance, t.findInstance, instanceArgs(k))
	if err != nil {
		return 0, err
	}
	t.instances.put(k, iid)
	return iid, nil
}

// useKey notes that bodies are sealed with a key, before the first of them is
// written.
func (t *tables) useKey(ctx context.Context, id keyring.ID, tenant string) error {
	if id == 0 || t.keys[id] {
		return nil
	}
	if _, err := t.addKey.ExecContext(ctx, []byte(tenant), int64(id)); err != nil {
		return err
	}
	t.keys[id] = true
	return nil
}

// writeSubmission records a submission, unless its key is taken until after now.
func (t *tables) writeSubmission(ctx context.Context, iid int64, one *encodedSubmission, now int64) (recorded bool, err error) {
	p, accepted := one.post, int64(0)
	if !p.Accepted.IsZero() {
		accepted = stamp(p.Accepted)
	}
	r, err := t.addPost.ExecContext(ctx, iid, []byte(p.Door), []byte(p.Key), one.digest,
		[]byte(p.Task), p.Row, p.Cursor, stamp(p.Expires), p.Answer, []byte(p.Agent), accepted, int64(p.Keep), one.note, now)
	if err != nil {
		return false, err
	}
	return t.changes(r)
}

// submission returns the submission that holds a key; its digest and its note are still
// bodies.
func (t *tables) submission(ctx context.Context, k swarm.InstanceKey, door, key string) (swarm.Submission, error) {
	return scanSubmission(t.findPost.QueryRowContext(ctx, submissionArgs(k, door, key)...), k, door)
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

// scanSubmission reads the submissionColumns of a row. Its digest and its note are bodies
// that the caller opens.
func scanSubmission(row interface{ Scan(...any) error }, k swarm.InstanceKey, door string) (swarm.Submission, error) {
	p := swarm.Submission{Instance: k, Door: door}
	var key, task, agent []byte
	var expires, accepted, keep int64
	err := row.Scan(&key, &p.Digest, &task, &p.Row, &p.Cursor, &expires, &p.Answer, &agent, &accepted, &keep, &p.Note)
	if errors.Is(err, sql.ErrNoRows) {
		return swarm.Submission{}, swarm.ErrNotFound
	}
	if err != nil {
		return swarm.Submission{}, err
	}
	p.Key, p.Task, p.Agent, p.Expires, p.Keep = string(key), string(task), string(agent), unstamp(expires), time.Duration(keep)
	if accepted > 0 {
		p.Accepted = unstamp(accepted)
	}
	return p, nil
}
