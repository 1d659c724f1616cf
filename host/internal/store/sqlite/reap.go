package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// reaping deletes what was taken out of reach: a task whose instance's number
// is negative is to be deleted, and nobody finds it. Its content goes slice by
// slice, its record last, so that its number is not given away while anything
// is left.
type reaping struct {
	doom, doomTenant                 *sql.Stmt
	next, tenantOf                   *sql.Stmt
	rows, events, history, values    *sql.Stmt
	letters                          *sql.Stmt
	agent, dropAgent                 *sql.Stmt
	turns, oldTurns, dropTurn, lines *sql.Stmt
	space, anySpace, dropSpace       *sql.Stmt
	task                             *sql.Stmt
	recorded, setOldest              *sql.Stmt
	instance, dropInstance, posts    *sql.Stmt
	dropTenant, dropKeys             *sql.Stmt
	addChore, dropChore              *sql.Stmt
}

const doomed = `UPDATE tasks SET iid = -iid, task = CAST(tid AS BLOB), state = 'doomed', ended = NULL, oldest = NULL `

func (r *reaping) texts() map[**sql.Stmt]string {
	slice := func(table string) string {
		return "DELETE FROM " + table + " WHERE id IN (SELECT id FROM " + table +
			" WHERE id BETWEEN ? AND ? LIMIT ?) RETURNING length(body)"
	}
	turns := `SELECT id, jid, length(header) + length(input) + coalesce(length(finish), 0) FROM turns WHERE id BETWEEN ? AND ?`
	return map[**sql.Stmt]string{
		&r.doom: doomed + "WHERE tid = ? AND ended = ?",
		&r.doomTenant: doomed + `WHERE tid IN (
			SELECT t.tid FROM instances i CROSS JOIN tasks t ON t.iid = i.iid WHERE i.tenant = ? LIMIT ?)`,
		&r.next:      "SELECT tid, -iid FROM tasks WHERE iid < 0 LIMIT 1",
		&r.tenantOf:  "SELECT tenant FROM instances WHERE iid = ?",
		&r.rows:      slice("queue"),
		&r.events:    slice("events"),
		&r.history:   slice("history"),
		&r.lines:     slice("journal"),
		&r.letters:   slice("outbox"),
		&r.agent:     "SELECT aid FROM agents WHERE tid = ? LIMIT 1",
		&r.dropAgent: "DELETE FROM agents WHERE aid = ? RETURNING coalesce(length(state), 0)",
		&r.turns:     turns + " LIMIT ?",
		&r.oldTurns:  turns + " AND at < ? LIMIT ?",
		&r.dropTurn:  "DELETE FROM turns WHERE id = ?",
		&r.space:     "SELECT sid FROM spaces WHERE iid = ? AND kind = 'task' AND tid = ? LIMIT 1",
		&r.anySpace:  "SELECT sid FROM spaces WHERE iid = ? LIMIT 1",
		&r.values: `DELETE FROM kv WHERE sid = ?1 AND name IN (SELECT name FROM kv WHERE sid = ?1 LIMIT ?2)
			RETURNING length(name) + length(value)`,
		&r.dropSpace: "DELETE FROM spaces WHERE sid = ?",
		&r.task:      "DELETE FROM tasks WHERE tid = ? RETURNING length(body)",
		&r.recorded: `SELECT tid, iid FROM tasks INDEXED BY tasks_recorded
			WHERE ended IS NOT NULL AND oldest IS NOT NULL AND oldest < ? LIMIT 1`,
		&r.setOldest:    "UPDATE tasks SET oldest = (SELECT min(at) FROM turns WHERE id BETWEEN ? AND ?) WHERE tid = ?",
		&r.instance:     "SELECT iid FROM instances WHERE tenant = ? LIMIT 1",
		&r.dropInstance: "DELETE FROM instances WHERE iid = ?",
		&r.posts: `DELETE FROM submissions WHERE (iid, door, key) IN (
			SELECT iid, door, key FROM submissions WHERE iid = ? LIMIT ?)`,
		&r.dropTenant: "DELETE FROM tenants WHERE tenant = ?",
		&r.dropKeys:   "DELETE FROM keys WHERE tenant = ? AND id <> ?",
		&r.addChore:   "INSERT INTO chores VALUES (?, ?) ON CONFLICT DO NOTHING",
		&r.dropChore:  "DELETE FROM chores WHERE kind = ? AND tenant = ?",
	}
}

// reap is a slice of the deleting of tasks.
type reap struct {
	// secure overwrites what is deleted.
	secure bool
	done   bool // there is no task left
}

// reap deletes all tasks that are doomed.
func (s *Store) reap(ctx context.Context, secure bool) error {
	for {
		r := &reap{secure: secure}
		if err := s.writer.do(ctx, r); err != nil || r.done {
			return err
		}
	}
}

func (r *reap) bytes() int { return purgeSlice }

func (r *reap) apply(ctx context.Context, t *tables) (steps int, err error) {
	if r.secure {
		return 0, t.securely(ctx, r.slice)
	}
	return 0, r.slice(ctx, t)
}

// securely overwrites what f deletes.
func (t *tables) securely(ctx context.Context, f func(context.Context, *tables) error) error {
	if _, err := t.conn.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	err := f(ctx, t)
	_, off := t.conn.ExecContext(ctx, "PRAGMA secure_delete = FAST")
	return errors.Join(err, off)
}

func (r *reap) slice(ctx context.Context, t *tables) error {
	d := &deletion{tables: t, left: purgeSlice}
	r.done = false
	for d.left > 0 {
		err := t.reaping.next.QueryRowContext(ctx).Scan(&d.tid, &d.iid)
		if r.done = errors.Is(err, sql.ErrNoRows); r.done {
			return nil
		}
		if err == nil {
			d.tenant, err = t.tenantOf(ctx, d.iid)
		}
		if err == nil {
			err = d.task(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) tenantOf(ctx context.Context, iid int64) (string, error) {
	var tenant []byte
	err := t.reaping.tenantOf.QueryRowContext(ctx, iid).Scan(&tenant)
	return string(tenant), err
}

// deletion deletes parts of a task until its bound is reached.
type deletion struct {
	*tables
	iid, tid int64
	tenant   string
	left     int   // how many entries it may still delete
	records  int64 // how many records of turns it has deleted
}

// task deletes parts in order. The bound left over tells whether all is gone.
func (d *deletion) task(ctx context.Context) error {
	lo, hi := pack(d.tid, 0), pack(d.tid, maxSeq)
	for _, part := range []func() error{
		func() error { return d.span(ctx, d.reaping.rows, lo, hi) },
		func() error { return d.span(ctx, d.reaping.events, lo, hi) },
		func() error { return d.span(ctx, d.reaping.letters, lo, hi) },
		func() error { return d.agents(ctx) },
		func() error { return d.turns(ctx, d.reaping.turns, lo, hi) },
		func() error { return d.spaces(ctx, d.reaping.space, d.iid, d.tid) },
		func() error { return d.blobs(ctx) },
	} {
		if err := part(); err != nil || d.left <= 0 {
			return err
		}
	}
	return d.delete(ctx, d.reaping.task, d.tid)
}

// span deletes entries between two ids.
func (d *deletion) span(ctx context.Context, stmt *sql.Stmt, lo, hi int64) error {
	return d.delete(ctx, stmt, lo, hi, d.left)
}

// delete runs a statement that returns the size of each entry it deletes.
func (d *deletion) delete(ctx context.Context, stmt *sql.Stmt, args ...any) error {
	rows, err := stmt.QueryContext(ctx, args...)
	sizes, err := collect(rows, err, func(rows *sql.Rows) (n int64, err error) {
		err = rows.Scan(&n)
		return n, err
	})
	for _, n := range sizes {
		d.tally.add(d.tenant, -n, 0)
	}
	d.left -= len(sizes)
	return err
}

// each works on what find finds first, until it finds nothing or the bound is
// reached; work deletes it.
func (d *deletion) each(ctx context.Context, find *sql.Stmt, work func(id int64) error, args ...any) error {
	for d.left > 0 {
		var id int64
		err := find.QueryRowContext(ctx, args...).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = work(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *deletion) agents(ctx context.Context) error {
	return d.each(ctx, d.reaping.agent, func(aid int64) error {
		if err := d.span(ctx, d.reaping.history, pack(aid, 0), pack(aid, maxSeq)); err != nil || d.left <= 0 {
			return err
		}
		return d.delete(ctx, d.reaping.dropAgent, aid)
	}, d.tid)
}

func (d *deletion) spaces(ctx context.Context, find *sql.Stmt, args ...any) error {
	return d.each(ctx, find, func(sid int64) error {
		if err := d.delete(ctx, d.reaping.values, sid, d.left); err != nil || d.left <= 0 {
			return err
		}
		d.left--
		_, err := d.reaping.dropSpace.ExecContext(ctx, sid)
		return err
	}, args...)
}

// turns deletes the records that find finds.
func (d *deletion) turns(ctx context.Context, find *sql.Stmt, args ...any) error {
	type turn struct {
		id   int64
		jid  sql.NullInt64
		size int64
	}
	rows, err := find.QueryContext(ctx, append(args, d.left)...)
	list, err := collect(rows, err, func(rows *sql.Rows) (r turn, err error) {
		err = rows.Scan(&r.id, &r.jid, &r.size)
		return r, err
	})
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.jid.Valid {
			if err := d.span(ctx, d.reaping.lines, pack(r.jid.Int64, 0), pack(r.jid.Int64, maxSeq)); err != nil || d.left <= 0 {
				return err
			}
		}
		if _, err := d.reaping.dropTurn.ExecContext(ctx, r.id); err != nil {
			return err
		}
		d.left--
		d.records++
		d.tally.add(d.tenant, -r.size, 0)
	}
	return nil
}
