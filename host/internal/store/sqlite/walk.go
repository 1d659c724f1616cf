package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"skep/host/internal/swarm"
)

// walkRows bounds a page of a walk, beside [swarm.PageBytes].
const walkRows = 512

// item is one body of a tenant, with all that is needed to read it, to tell
// what it is, and to replace it.
type item struct {
	key  swarm.TaskKey // with an empty task for what is of an instance
	at   spot
	body []byte
	// swap is the statement that replaces the body of row.
	swap string
	row  []any
	// facts stand beside the body.
	facts facts
}

// facts are what an export tells besides bodies.
type facts struct {
	agent, scope, name string
	turn               int64
	stash              bool
	post               *swarm.Submission
}

// place returns where the body lies.
func (i item) place() place { return placeOf(i.key) }

// Statements that replace a body, unless it has changed since it was read.
const (
	swapTask    = "UPDATE tasks SET body = ? WHERE tid = ? AND body = ?"
	swapQueue   = "UPDATE queue SET body = ? WHERE id = ? AND body = ?"
	swapEvents  = "UPDATE events SET body = ? WHERE id = ? AND body = ?"
	swapState   = "UPDATE agents SET state = ? WHERE aid = ? AND state = ?"
	swapHistory = "UPDATE history SET body = ? WHERE id = ? AND body = ?"
	swapHeader  = "UPDATE turns SET header = ? WHERE id = ? AND header = ?"
	swapInput   = "UPDATE turns SET input = ? WHERE id = ? AND input = ?"
	swapEnd     = "UPDATE turns SET finish = ? WHERE id = ? AND finish = ?"
	swapJournal = "UPDATE journal SET body = ? WHERE id = ? AND body = ?"
	swapValue   = "UPDATE kv SET value = ? WHERE sid = ? AND name = ? AND value = ?"
	swapDefined = "UPDATE definitions SET body = ? WHERE tenant = ? AND swarm = ? AND digest = ? AND body = ?"
	swapLoaded  = "UPDATE loaded SET body = ? WHERE tenant = ? AND swarm = ? AND body = ?"
	swapBlob    = "UPDATE blobs SET body = ? WHERE bid = ? AND body = ?"
	swapNamer   = "UPDATE namers SET body = ? WHERE tenant = ? AND body = ?"
	swapLetter  = "UPDATE outbox SET body = ? WHERE id = ? AND body = ?"
	swapDigest  = "UPDATE submissions SET digest = ? WHERE iid = ? AND door = ? AND key = ? AND digest = ?"
)

// walk visits all bodies of a tenant, page by page, each as it is when its page
// is read.
type walk struct {
	db    *sql.DB
	visit func([]item) error
	stmts walkStmts
}

type walkStmts struct {
	instances, tasks, posts    *sql.Stmt
	queue, events, history     *sql.Stmt
	agents, turns, journal     *sql.Stmt
	spaces, taskSpaces, values *sql.Stmt
	letters                    *sql.Stmt
	namer, blobs, uses         *sql.Stmt
}

func (w *walkStmts) texts() map[**sql.Stmt]string {
	span := func(columns, table string) string {
		return "SELECT " + columns + " FROM " + table + " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
	}
	return map[**sql.Stmt]string{
		&w.instances: `SELECT iid, swarm, instance FROM instances
			WHERE tenant = ? AND (swarm, instance) > (?, ?) ORDER BY swarm, instance LIMIT ?`,
		&w.tasks: "SELECT tid, task, body FROM tasks WHERE iid = ? AND task > ? ORDER BY task LIMIT ?",
		&w.posts: `SELECT door, key, digest, task, row, cursor, expires, answer FROM submissions
			WHERE iid = ? AND (door, key) > (?, ?) ORDER BY door, key LIMIT ?`,
		&w.queue:      span("id, stash, body", "queue"),
		&w.events:     span("id, 0, body", "events"),
		&w.history:    span("id, 0, body", "history"),
		&w.journal:    span("id, 0, body", "journal"),
		&w.letters:    span("id, dead, body", "outbox"),
		&w.turns:      span("id, jid, header, input, finish", "turns"),
		&w.agents:     "SELECT aid, agent, state FROM agents WHERE tid = ? AND agent > ? ORDER BY agent LIMIT ?",
		&w.taskSpaces: "SELECT sid, kind, agent FROM spaces WHERE iid = ? AND kind = 'task' AND tid = ? AND agent > ? ORDER BY agent LIMIT ?",
		&w.spaces:     "SELECT sid, kind, agent FROM spaces WHERE iid = ? AND kind = ? AND tid = 0 AND agent > ? ORDER BY agent LIMIT ?",
		&w.values:     "SELECT name, value FROM kv WHERE sid = ? AND name > ? ORDER BY name LIMIT ?",
		&w.namer:      "SELECT body FROM namers WHERE tenant = ?",
		&w.blobs:      "SELECT bid, name, body FROM blobs INDEXED BY blobs_of WHERE tenant = ? AND bid > ? ORDER BY bid LIMIT ?",
		&w.uses: `SELECT u.bid, b.name FROM blob_uses u CROSS JOIN blobs b ON b.bid = u.bid
			WHERE u.tid = ? AND u.bid > ? ORDER BY u.bid LIMIT ?`,
	}
}

// walk visits a tenant. Names compare as blobs, and every blob is greater than
// the number that each list starts from.
func (s *Store) walk(ctx context.Context, tenant string, visit func([]item) error) (err error) {
	w := &walk{db: s.readers.db, visit: visit}
	defer func() { err = errors.Join(err, w.stmts.close()) }()
	if err := prepare(ctx, w.db, w.stmts.texts()); err != nil {
		return err
	}
	var swarmName, instance any = int64(0), int64(0)
	for {
		type found struct {
			iid             int64
			swarm, instance []byte
		}
		page, err := pageOf(ctx, w.stmts.instances, func(rows *sql.Rows) (f found, size int, err error) {
			err = rows.Scan(&f.iid, &f.swarm, &f.instance)
			return f, 0, err
		}, []byte(tenant), swarmName, instance)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return errors.Join(w.definitions(ctx, tenant), w.blobs(ctx, tenant))
		}
		for _, f := range page {
			key := swarm.InstanceKey{Tenant: tenant, Swarm: string(f.swarm), Instance: string(f.instance)}
			if err := w.instance(ctx, f.iid, key); err != nil {
				return err
			}
		}
		swarmName, instance = page[len(page)-1].swarm, page[len(page)-1].instance
	}
}

func (w *walkStmts) close() error {
	var errs []error
	for stmt := range w.texts() {
		if *stmt != nil {
			errs = append(errs, (*stmt).Close())
		}
	}
	return errors.Join(errs...)
}

// pageOf reads a page that is bounded in rows and in bytes.
func pageOf[T any](ctx context.Context, stmt *sql.Stmt, scan func(*sql.Rows) (v T, size int, err error), args ...any) ([]T, error) {
	left, first := swarm.PageBytes, true
	rows, err := stmt.QueryContext(ctx, append(args, walkRows)...)
	return collectUntil(rows, err, func(rows *sql.Rows) (v T, more bool, err error) {
		v, size, err := scan(rows)
		left -= size
		more, first = first || left >= 0, false
		return v, more, err
	})
}

func (w *walk) instance(ctx context.Context, iid int64, key swarm.InstanceKey) error {
	if err := w.posts(ctx, iid, key); err != nil {
		return err
	}
	for _, kind := range []swarm.KVKind{swarm.KVInstance, swarm.KVAgent} {
		if err := w.spaces(ctx, w.stmts.spaces, swarm.TaskKey{InstanceKey: key}, iid, string(kind)); err != nil {
			return err
		}
	}
	var after any = int64(0)
	for {
		type found struct {
			tid        int64
			task, body []byte
		}
		page, err := pageOf(ctx, w.stmts.tasks, func(rows *sql.Rows) (f found, size int, err error) {
			err = rows.Scan(&f.tid, &f.task, &f.body)
			return f, len(f.body), err
		}, iid, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			key := swarm.TaskKey{InstanceKey: key, Task: string(f.task)}
			it := item{key: key, at: spot{inTasks, "", 0}, body: f.body, swap: swapTask, row: []any{f.tid}}
			if err := errors.Join(w.visit([]item{it}), w.task(ctx, iid, f.tid, key)); err != nil {
				return err
			}
		}
		after = page[len(page)-1].task
	}
}

func (w *walk) posts(ctx context.Context, iid int64, key swarm.InstanceKey) error {
	var door, id any = int64(0), int64(0)
	for {
		page, err := pageOf(ctx, w.stmts.posts, func(rows *sql.Rows) (it item, size int, err error) {
			p := &swarm.Submission{Instance: key}
			var door, id, task []byte
			var expires int64
			err = rows.Scan(&door, &id, &it.body, &task, &p.Row, &p.Cursor, &expires, &p.Answer)
			p.Door, p.Key, p.Task, p.Expires = string(door), string(id), string(task), unstamp(expires)
			it.key.InstanceKey, it.at, it.swap = key, postSpot(p.Door, p.Key), swapDigest
			it.row, it.facts.post = []any{iid, door, id}, p
			return it, len(it.body), err
		}, iid, door, id)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := w.visit(page); err != nil {
			return err
		}
		last := page[len(page)-1]
		door, id = last.row[1], last.row[2]
	}
}
