package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"runtime"
	"time"

	"skep/host/internal/swarm"
)

// minReaders is how many connections read at once on a small machine.
const minReaders = 4

// readers answers questions on connections that cannot write. Every query finds
// its task by the whole key and reads no more than it returns.
type readers struct {
	db *sql.DB
	// patience is how long a read waits for a server that is away. It is 0 for a file.
	patience time.Duration

	task, rows, states, posts    *sql.Stmt
	taskQueue                    *sql.Stmt
	runningTasks                 *sql.Stmt
	tasks, instances             *sql.Stmt
	paused                       *sql.Stmt
	listed                       listStmts
	events, history, historyTail *sql.Stmt
	submission, submissions      *sql.Stmt
	turn, turns, journal         *sql.Stmt
	value, values, space         *sql.Stmt
	footprint, ended             *sql.Stmt
	outboxMessages, outboxes     *sql.Stmt
	namer, blob, taskBlob        *sql.Stmt
	deadLetters, deadOne         *sql.Stmt
	gatewayState, gatewayStates  *sql.Stmt
	hasTenant                    *sql.Stmt
}

// Parts that queries share. CROSS JOIN keeps the planner to this order, in
// which each table is found through the one before it.
const (
	fromTask     = " FROM instances i CROSS JOIN tasks t ON t.iid = i.iid"
	whereTask    = " WHERE i.tenant = ? AND i.swarm = ? AND i.instance = ? AND t.task = ?"
	fromHistory  = fromTask + " CROSS JOIN agents a ON a.tid = t.tid CROSS JOIN history h"
	whereHistory = whereTask + " AND a.agent = ? AND h.id > (a.aid << 31) + ? AND h.id < (a.aid + 1) << 31"

	// A scope of a task is under the task, the others under the instance alone.
	fromSpace = ` FROM instances i CROSS JOIN spaces s ON s.iid = i.iid AND s.kind = ?5 AND s.agent = ?6
		AND s.tid = CASE ?5 WHEN 'task' THEN (SELECT t.tid FROM tasks t WHERE t.iid = i.iid AND t.task = ?4) ELSE 0 END`
	whereSpace = " WHERE i.tenant = ?1 AND i.swarm = ?2 AND i.instance = ?3"
)

// texts are the statements. Each casts its LIMIT: SQLite prepares a statement anew when a
// bare parameter of LIMIT has got another value, see sqlite3ExprIsInteger in
// https://www.sqlite.org/src/file?name=src/expr.c.
func (r *readers) texts() map[**sql.Stmt]string {
	texts := r.listed.texts()
	maps.Copy(texts, r.ownTexts())
	return texts
}

func (r *readers) ownTexts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&r.task: "SELECT t.iid, t.tid, t.body" + fromTask + whereTask,
		&r.rows: "SELECT id, stash, body FROM queue WHERE id BETWEEN ? AND ? ORDER BY id",
		// The task itself comes as the row 0, which no row is.
		&r.taskQueue: "SELECT 0, 0, t.body" + fromTask + whereTask + " UNION ALL SELECT q.id, q.stash, q.body" + fromTask +
			" CROSS JOIN queue q" + whereTask + " AND q.id > t.tid << 31 AND q.id < (t.tid + 1) << 31",
		&r.states: "SELECT agent, state FROM agents WHERE tid = ? AND state IS NOT NULL",
		&r.posts: `SELECT row, door, key, keep FROM submissions INDEXED BY submissions_open
			WHERE iid = ? AND task = ? AND answer = 0 ORDER BY cursor`,
		&r.runningTasks: `SELECT i.tenant, i.swarm, i.instance, t.task,
				(SELECT count(*) FROM queue q WHERE q.id > t.tid << 31 AND q.id < (t.tid + 1) << 31 AND q.stash = 0)
			FROM tasks t INDEXED BY tasks_running CROSS JOIN instances i ON i.iid = t.iid
			WHERE t.state = 'running' ORDER BY t.tid`,
		&r.tasks: "SELECT t.task, t.body, t.created" + fromTask + ` WHERE i.tenant = ? AND i.swarm = ? AND i.instance = ?
			AND t.created < ? ORDER BY t.created DESC, t.tid DESC LIMIT CAST(? AS BIGINT)`,
		// No name of a tenant has the byte FF, which UTF-8 does not use.
		&r.paused: `SELECT i.tenant, i.swarm, i.instance, t.task, t.iid, t.tid, t.body
			FROM tasks t INDEXED BY tasks_paused CROSS JOIN instances i ON i.iid = t.iid
			WHERE t.state = 'paused' AND (t.iid, t.tid) > (?4, ?5)
			AND t.iid IN (SELECT iid FROM instances WHERE tenant BETWEEN ?1 AND CASE ?1 WHEN x'' THEN x'FF' ELSE ?1 END
				AND swarm = ?2 AND (?3 = x'' OR instance = ?3))
			ORDER BY t.iid, t.tid LIMIT CAST(?6 AS BIGINT)`,
		&r.instances: "SELECT instance FROM instances WHERE tenant = ? AND swarm = ? ORDER BY instance",
		&r.events: "SELECT e.id, e.body" + fromTask + " CROSS JOIN events e" + whereTask +
			" AND e.id > (t.tid << 31) + ? AND e.id < (t.tid + 1) << 31 ORDER BY e.id LIMIT CAST(? AS BIGINT)",
		&r.history:     "SELECT h.id, h.body" + fromHistory + whereHistory + " ORDER BY h.id LIMIT CAST(? AS BIGINT)",
		&r.historyTail: "SELECT h.id, h.body" + fromHistory + whereHistory + " ORDER BY h.id DESC LIMIT CAST(? AS BIGINT)",
		&r.submission:  findSubmission,
		&r.submissions: "SELECT " + submissionColumns + ` FROM instances i CROSS JOIN submissions s INDEXED BY submissions_listed
			ON s.iid = i.iid AND s.door = ? AND s.accepted > 0 AND (s.accepted, s.key) < (?, ?)
			WHERE i.tenant = ? AND i.swarm = ? AND i.instance = ? ORDER BY s.accepted DESC, s.key DESC LIMIT CAST(? AS BIGINT)`,
		&r.turn: "SELECT r.jid, r.header, r.finish, r.input" + fromTask + " CROSS JOIN turns r" + whereTask +
			" AND r.id = (t.tid << 31) + ?",
		&r.turns: "SELECT r.id, r.header, r.finish" + fromTask + " CROSS JOIN turns r" + whereTask +
			" AND r.id > (t.tid << 31) + ? AND r.id < (t.tid + 1) << 31 ORDER BY r.id LIMIT CAST(? AS BIGINT)",
		&r.journal: "SELECT id, body FROM journal WHERE id BETWEEN ? AND ? ORDER BY id",
		&r.value:   "SELECT v.value" + fromSpace + " CROSS JOIN kv v" + whereSpace + " AND v.sid = s.sid AND v.name = ?7",
		&r.values: "SELECT v.name" + fromSpace + " CROSS JOIN kv v" + whereSpace +
			" AND v.sid = s.sid AND v.name >= ?7 AND v.name > ?8 AND v.name < ?9 ORDER BY v.name LIMIT CAST(?10 AS BIGINT)",
		&r.space: "SELECT s.keys, s.bytes" + fromSpace + whereSpace,
		&r.ended: `SELECT t.tid, t.ended, i.tenant, i.swarm, i.instance, t.task
			FROM tasks t INDEXED BY tasks_ended CROSS JOIN instances i ON i.iid = t.iid
			WHERE t.ended < ? AND t.ended >= ? AND (t.ended, t.tid) > (?, ?) ORDER BY t.ended, t.tid LIMIT CAST(? AS BIGINT)`,
		&r.hasTenant:      hasTenant,
		&r.footprint:      "SELECT bytes, tasks, day, made, tokens, micro_usd FROM tenants WHERE tenant = ?",
		&r.outboxMessages: "SELECT id, body FROM outbox WHERE id BETWEEN ? AND ? AND dead = 0 ORDER BY id",
		&r.namer:          "SELECT body FROM namers WHERE tenant = ?",
		&r.gatewayState:   findGatewayState,
		&r.gatewayStates:  listGatewayState,
		&r.blob:           "SELECT body FROM blobs WHERE tenant = ? AND name = ?",
		&r.taskBlob:       "SELECT b.body" + fromTask + " CROSS JOIN blobs b" + whereTask + " AND b.tenant = i.tenant AND b.name = ? AND EXISTS (SELECT 1 FROM blob_uses u WHERE u.tid = t.tid AND u.bid = b.bid)",
		// Tasks that are on their way out have no instance any more.
		&r.outboxes: `SELECT i.tenant, i.swarm, i.instance, t.task, o.peer FROM outbox o INDEXED BY outbox_waiting
			CROSS JOIN tasks t ON t.tid = o.id >> 31 CROSS JOIN instances i ON i.iid = t.iid WHERE o.dead = 0 ORDER BY o.id`,
		&r.deadLetters: fromDead("outbox_dead") + " AND i.tenant = ? AND o.id < ? ORDER BY o.id DESC LIMIT CAST(? AS BIGINT)",
		&r.deadOne:     fromDead("outbox_named") + " AND o.letter = ? AND i.tenant = ? ORDER BY o.id LIMIT 1",
	}
}

func fromDead(index string) string {
	return `SELECT i.tenant, i.swarm, i.instance, t.task, o.id, o.body FROM outbox o INDEXED BY ` + index + `
		CROSS JOIN tasks t ON t.tid = o.id >> 31 CROSS JOIN instances i ON i.iid = t.iid WHERE o.dead <> 0`
}

func openReaders(ctx context.Context, path string) (*readers, error) {
	db, err := sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, "_query_only": {"1"}}))
	if err != nil {
		return nil, err
	}
	n := max(minReaders, runtime.GOMAXPROCS(0))
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	r := &readers{db: db}
	if err := prepare(ctx, db, r.texts()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

func (r *readers) close() error { return r.db.Close() }

// collect reads all rows of a query. Bodies are decoded by its callers, when the
// query is done: a reader that stays keeps the log from starting over.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows) (T, error)) ([]T, error) {
	return collectUntil(rows, err, func(rows *sql.Rows) (v T, more bool, err error) {
		v, err = scan(rows)
		return v, true, err
	})
}

// collectUntil reads rows as long as scan wants them.
func collectUntil[T any](rows *sql.Rows, err error, scan func(*sql.Rows) (v T, more bool, err error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, more, err := scan(rows)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		out = append(out, v)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// scanEntry reads an id and a body.
func scanEntry(rows *sql.Rows) (e entry, err error) {
	err = rows.Scan(&e.seq, &e.body)
	e.seq = seqOf(e.seq)
	return e, err
}

// IsDamaged reports whether a record was found and cannot be read.
func IsDamaged(err error) bool { return errors.Is(err, errBody) && !errors.Is(err, swarm.ErrErasing) }

// decodeReadable decodes what collect has read. A record that is damaged is logged and left
// out: it must not hide the others.
func decodeReadable[S, T any](log *slog.Logger, stored []S, decode func(S) (T, error)) ([]T, error) {
	var out []T
	for _, s := range stored {
		v, err := decode(s)
		switch {
		case err == nil:
			out = append(out, v)
		case !IsDamaged(err):
			return nil, err
		default:
			log.Error("a record is damaged; lists leave it out. Restore the data directory from a backup, or erase the tenant", "err", err)
		}
	}
	return out, nil
}

// decodeAll decodes what collect has read.
func decodeAll[S, T any](stored []S, err error, decode func(S) (T, error)) ([]T, error) {
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	out := make([]T, len(stored))
	for i, s := range stored {
		if out[i], err = decode(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}
