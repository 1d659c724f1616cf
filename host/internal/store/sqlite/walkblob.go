package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"

	"skep/host/internal/swarm"
)

// blobs visits the blobs of a tenant, and what names them.
func (w *walk) blobs(ctx context.Context, tenant string) error {
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant}}
	rows, err := w.stmts.namer.QueryContext(ctx, []byte(tenant))
	namers, err := collect(rows, err, func(rows *sql.Rows) (it item, err error) {
		it = item{key: key, at: spot{inNamers, "", 0}, swap: swapNamer, row: []any{[]byte(tenant)}}
		return it, rows.Scan(&it.body)
	})
	if err == nil && len(namers) > 0 {
		err = w.visit(namers)
	}
	for after := int64(0); err == nil; {
		var page []itemAt
		page, err = pageOf(ctx, w.stmts.blobs, func(rows *sql.Rows) (it itemAt, size int, err error) {
			var name []byte
			err = rows.Scan(&it.id, &name, &it.body)
			it.key, it.at, it.swap, it.row = key, spot{inBlobs, string(name), 0}, swapBlob, []any{it.id}
			it.facts.name = hex.EncodeToString(name)
			return it, len(it.body), err
		}, []byte(tenant), after)
		if err != nil || len(page) == 0 {
			return err
		}
		err = w.visit(itemsOf(page))
		after = page[len(page)-1].id
	}
	return err
}

// uses visits what tells which blobs a task uses. It has no bodies.
func (w *walk) uses(ctx context.Context, tid int64, key swarm.TaskKey) error {
	for after := int64(0); ; {
		page, err := pageOf(ctx, w.stmts.uses, func(rows *sql.Rows) (it itemAt, size int, err error) {
			var name []byte
			err = rows.Scan(&it.id, &name)
			it.key, it.at.table, it.facts.name = key, inBlobUses, hex.EncodeToString(name)
			return it, 0, err
		}, tid, after)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := w.visit(itemsOf(page)); err != nil {
			return err
		}
		after = page[len(page)-1].id
	}
}
