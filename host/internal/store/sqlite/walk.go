package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"skep/host/internal/swarm"
)

// walkRows bounds a page of a walk, beside [swarm.PageBytes].
const walkRows = 512

// item is one body of a tenant, or a row without a body.
type item struct {
	node
	table  *table
	column *column
	body   []byte
	rowKey []any // of its row
}

// place returns where the body lies.
func (i item) place() place { return placeOf(i.key) }

// tableRow is a row of a table as a walk reads it.
type tableRow struct {
	columns []string
	values  []any
}

func (r tableRow) value(column string) any { return r.values[slices.Index(r.columns, column)] }

func (r tableRow) int(column string) int64 { return r.value(column).(int64) }

// bytes returns nil for NULL.
func (r tableRow) bytes(column string) []byte {
	b, _ := r.value(column).([]byte)
	return b
}

// text returns a name, which is a blob, or text that the store itself has chosen.
func (r tableRow) text(column string) string {
	if s, ok := r.value(column).(string); ok {
		return s
	}
	return string(r.bytes(column))
}

func (r tableRow) list(columns []string) []any {
	var list []any
	for _, c := range columns {
		list = append(list, r.value(c))
	}
	return list
}

// walk visits all bodies of a tenant, page by page, each as it is when its page
// is read.
type walk struct {
	readers *readers
	visit   func([]item) error
	stmts   map[*table]**sql.Stmt
}

func newWalk(r *readers, visit func([]item) error) *walk {
	w := &walk{readers: r, visit: visit, stmts: map[*table]**sql.Stmt{}}
	eachTable(tenantTables, func(t *table) { w.stmts[t] = new(*sql.Stmt) })
	return w
}

func (w *walk) texts() map[**sql.Stmt]string {
	texts := map[**sql.Stmt]string{}
	for t, stmt := range w.stmts {
		texts[stmt] = t.walkText()
	}
	return texts
}

func (w *walk) close() error {
	var errs []error
	for _, stmt := range w.stmts {
		if *stmt != nil {
			errs = append(errs, (*stmt).Close())
		}
	}
	return errors.Join(errs...)
}

// walk visits a tenant.
func (s *Store) walk(ctx context.Context, tenant string, visit func([]item) error) (err error) {
	w := newWalk(s.readers, visit)
	defer func() { err = errors.Join(err, w.close()) }()
	_, err = reread(ctx, s.readers.patience, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, prepare(ctx, s.readers.db, w.texts())
	})
	if err != nil {
		return err
	}
	n := node{number: []byte(tenant)}
	n.key.Tenant = tenant
	return w.tables(ctx, tenantTables, n)
}

// tables visits what tables have below a row.
func (w *walk) tables(ctx context.Context, list []*table, parent node) error {
	for _, t := range list {
		if err := w.table(ctx, t, parent); err != nil {
			return err
		}
	}
	return nil
}

// table visits the rows that a table has below a row: a page at a time, or if they
// have rows below them, each before those.
func (w *walk) table(ctx context.Context, t *table, parent node) error {
	if parent.number == nil {
		return nil
	}
	args, after := t.walkArgs(parent)
	for {
		page, isLast, err := pageOf(ctx, w.readers, *w.stmts[t], t.scan(), slices.Concat(args, after)...)
		if err != nil || len(page) == 0 {
			return err
		}
		var items []item
		for _, r := range page {
			n, found := t.read(parent, r)
			if len(t.children) == 0 {
				items = append(items, found...)
				continue
			}
			if err := w.visitAll(found); err != nil {
				return err
			}
			if err := w.tables(ctx, t.children, n); err != nil {
				return err
			}
		}
		if err := w.visitAll(items); err != nil || isLast || t.order == nil {
			return err
		}
		last := page[len(page)-1].list(t.order)
		if t.isChild() {
			args = last
		} else {
			after = last
		}
	}
}

func (w *walk) visitAll(items []item) error {
	if len(items) == 0 {
		return nil
	}
	return w.visit(items)
}

// walkArgs are the arguments of the first page. Names compare as blobs, and every
// blob is greater than the number that each list starts from.
func (t *table) walkArgs(parent node) (args, after []any) {
	args = t.parentArgs(parent)
	if t.isChild() {
		return args[:1], args[1:]
	}
	for range t.order {
		after = append(after, int64(0))
	}
	return args, after
}

// scan reads a row and the size of its bodies.
func (t *table) scan() func(*sql.Rows) (r tableRow, size int, err error) {
	columns := t.columns()
	return func(rows *sql.Rows) (r tableRow, size int, err error) {
		r = tableRow{columns, make([]any, len(columns))}
		into := make([]any, len(columns))
		for i := range into {
			into[i] = &r.values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return r, 0, err
		}
		keepEmpty(r.values)
		for _, c := range t.bodies {
			if c.name != "" {
				size += len(r.bytes(c.name))
			}
		}
		return r, size, nil
	}
}

// keepEmpty gives empty bytes, which the driver reads as nil, a value: as an argument, nil would
// be NULL and equal to no name.
func keepEmpty(values []any) {
	for i, v := range values {
		if b, ok := v.([]byte); ok && b == nil {
			values[i] = []byte{}
		}
	}
}

// read returns the node of a row and what a walk visits of it.
func (t *table) read(n node, r tableRow) (node, []item) {
	t.describe(&n, r)
	if n.above, n.number = n.number, nil; t.number != "" {
		n.number = r.value(t.number)
	}
	var items []item
	for i := range t.bodies {
		c := &t.bodies[i]
		it := item{node: n, table: t, column: c, rowKey: r.list(t.key)}
		if c.place != "" {
			it.at.table = c.place
		}
		if c.name != "" {
			it.body = r.bytes(c.name)
		}
		if it.body != nil || !c.optional {
			items = append(items, it)
		}
	}
	return n, items
}

// pageOf reads a page that is bounded in rows and in bytes, and reports whether it is the last.
func pageOf[T any](ctx context.Context, r *readers, stmt *sql.Stmt, scan func(*sql.Rows) (v T, size int, err error), args ...any) (page []T, last bool, err error) {
	whole := true
	page, err = readRowsUntil(ctx, r.query(stmt, append(args, walkRows)...), func() func(*sql.Rows) (T, bool, error) {
		left, first := swarm.PageBytes, true
		whole = true
		return func(rows *sql.Rows) (v T, more bool, err error) {
			v, size, err := scan(rows)
			left -= size
			whole, first = first || left >= 0, false
			return v, whole, err
		}
	})
	return page, whole && len(page) < walkRows, err
}
