package sqlite

import (
	"context"
	"database/sql"
)

// definitions visits the definitions of a tenant, which are few.
func (w *walk) definitions(ctx context.Context, tenant string) error {
	rows, err := w.db.QueryContext(ctx, "SELECT swarm, digest, body FROM definitions WHERE tenant = ?", []byte(tenant))
	kept, err := collect(rows, err, func(rows *sql.Rows) (it item, err error) {
		var name, digest []byte
		err = rows.Scan(&name, &digest, &it.body)
		it.key, it.at, it.swap = swarmOf(tenant, string(name)), spot{inDefinitions, string(digest), 0}, swapDefined
		it.row, it.facts.name = []any{[]byte(tenant), name, digest}, string(digest)
		return it, err
	})
	if err != nil {
		return err
	}
	rows, err = w.db.QueryContext(ctx, "SELECT swarm, body FROM loaded WHERE tenant = ?", []byte(tenant))
	loaded, err := collect(rows, err, func(rows *sql.Rows) (it item, err error) {
		var name []byte
		err = rows.Scan(&name, &it.body)
		it.key, it.at, it.swap = swarmOf(tenant, string(name)), spot{inLoaded, "", 0}, swapLoaded
		it.row = []any{[]byte(tenant), name}
		return it, err
	})
	if err != nil {
		return err
	}
	if items := append(kept, loaded...); len(items) > 0 {
		return w.visit(items)
	}
	return nil
}
