package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
)

// deleteStmts deletes what was taken out of reach: a task whose instance's number
// is negative is doomed, and no lookup finds it. Its content is deleted slice by
// slice, its record last, so that its number is not given to another task before.
type deleteStmts struct {
	doom, doomTenant    *sql.Stmt
	next, tenantOf      *sql.Stmt
	recorded, setOldest *sql.Stmt
	dropKeys            *sql.Stmt
	addChore, dropChore *sql.Stmt
	of                  map[*table]*tableDeleteStmts
}

// tableDeleteStmts deletes the rows of a table: with slice many at a time, or with find
// and drop one by one.
type tableDeleteStmts struct{ slice, find, drop *sql.Stmt }

const doomed = `UPDATE tasks SET iid = -iid, task = CAST(tid AS BLOB), state = 'doomed', ended = NULL, oldest = NULL `

func (r *deleteStmts) texts() map[**sql.Stmt]string {
	texts := map[**sql.Stmt]string{
		&r.doom: doomed + "WHERE tid = ? AND ended = ?",
		&r.doomTenant: doomed + `WHERE tid IN (
			SELECT t.tid FROM instances i CROSS JOIN tasks t ON t.iid = i.iid WHERE i.tenant = ? LIMIT CAST(? AS BIGINT))`,
		&r.next:     "SELECT tid, -iid FROM tasks WHERE iid < 0 LIMIT 1",
		&r.tenantOf: "SELECT tenant FROM instances WHERE iid = ?",
		&r.recorded: `SELECT tid, iid FROM tasks INDEXED BY tasks_recorded
			WHERE ended IS NOT NULL AND oldest IS NOT NULL AND oldest < ? LIMIT 1`,
		&r.setOldest: "UPDATE tasks SET oldest = (SELECT min(at) FROM turns WHERE id BETWEEN ? AND ?) WHERE tid = ?",
		&r.dropKeys:  "DELETE FROM keys WHERE tenant = ? AND id <> ?",
		&r.addChore:  "INSERT INTO chores VALUES (?, ?) ON CONFLICT DO NOTHING",
		&r.dropChore: "DELETE FROM chores WHERE kind = ? AND tenant = ?",
	}
	r.of = map[*table]*tableDeleteStmts{}
	eachTable([]*table{instanceTable, realmTable, oldTurnTable}, func(t *table) {
		if r.of[t] != nil {
			return
		}
		d := &tableDeleteStmts{}
		r.of[t] = d
		if t.isSliced() {
			texts[&d.slice] = t.sliceText()
			return
		}
		texts[&d.find], texts[&d.drop] = t.findText(), t.dropText()
	})
	return texts
}

// doomedDeletion is a slice of the deleting of tasks.
type doomedDeletion struct {
	done bool // there is no task left
}

// deleteDoomed deletes all tasks that are doomed.
func (s *Store) deleteDoomed(ctx context.Context) error {
	for {
		r := &doomedDeletion{}
		if err := s.writer.submit(ctx, r); err != nil || r.done {
			return err
		}
	}
}

func (r *doomedDeletion) bytes() int { return purgeSlice }

func (r *doomedDeletion) apply(ctx context.Context, t *tables) (steps int, _ error) {
	d := &deletion{tables: t, left: purgeSlice}
	r.done = false
	for d.left > 0 {
		err := t.reaping.next.QueryRowContext(ctx).Scan(&d.tid, &d.iid)
		if r.done = errors.Is(err, sql.ErrNoRows); r.done {
			return 0, nil
		}
		if err == nil {
			d.tenant, err = t.tenantOf(ctx, d.iid)
		}
		if err == nil {
			_, err = d.row(ctx, taskTable, []any{d.tid}, node{above: d.iid, number: d.tid})
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (t *tables) tenantOf(ctx context.Context, iid int64) (string, error) {
	var tenant []byte
	err := t.reaping.tenantOf.QueryRowContext(ctx, iid).Scan(&tenant)
	return string(tenant), err
}

// deletion deletes rows of one tenant until its bound is reached.
type deletion struct {
	*tables
	iid, tid int64
	tenant   string
	left     int // how many rows it may still delete
}

// row deletes a row after the rows below it. If the bound is reached before, the
// row stays and row reports false.
func (d *deletion) row(ctx context.Context, t *table, key []any, n node) (gone bool, err error) {
	for _, child := range t.children {
		if _, err := d.rows(ctx, child, n); err != nil || d.left <= 0 {
			return false, err
		}
	}
	if _, err := d.delete(ctx, d.reaping.of[t].drop, key...); err != nil || t.dropped == nil {
		return true, err
	}
	return true, t.dropped(ctx, d, key)
}

// rows deletes the rows that a table has below a row, and counts them. They are
// gone if the bound is not reached.
func (d *deletion) rows(ctx context.Context, t *table, parent node, more ...any) (n int, err error) {
	if parent.number == nil {
		return 0, nil
	}
	args := slices.Concat(t.parentArgs(parent), more, []any{d.left})
	if t.isSliced() {
		return d.delete(ctx, d.reaping.of[t].slice, args...)
	}
	rows, err := d.reaping.of[t].find.QueryContext(ctx, args...)
	list, err := collect(rows, err, t.scanKey)
	for i := 0; i < len(list) && err == nil && d.left > 0; i++ {
		key, below := list[i][:len(t.key)], node{above: parent.number}
		if t.number != "" {
			below.number = list[i][len(t.key)]
		}
		var gone bool
		if gone, err = d.row(ctx, t, key, below); gone {
			n++
		}
	}
	return n, err
}

// scanKey reads what findText selects.
func (t *table) scanKey(rows *sql.Rows) ([]any, error) {
	found := make([]any, len(t.key), len(t.key)+1)
	if t.number != "" {
		found = append(found, nil)
	}
	into := make([]any, len(found))
	for i := range into {
		into[i] = &found[i]
	}
	return found, rows.Scan(into...)
}

// delete runs a statement that returns the size of each row it deletes.
func (d *deletion) delete(ctx context.Context, stmt *sql.Stmt, args ...any) (n int, err error) {
	rows, err := stmt.QueryContext(ctx, args...)
	sizes, err := collect(rows, err, func(rows *sql.Rows) (size int64, err error) {
		err = rows.Scan(&size)
		return size, err
	})
	for _, size := range sizes {
		d.delta.add(d.tenant, -size, 0)
	}
	d.left -= len(sizes)
	return len(sizes), err
}
