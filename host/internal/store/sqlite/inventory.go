package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"

	"skep/host/internal/keyring"
	"skep/host/internal/swarm"
)

// Holding is a tenant and what it keeps.
type Holding struct {
	Tenant string
	swarm.Footprint
}

// holdings lists all tenants that a row names. What the host itself keeps is of
// no tenant.
const holdings = `SELECT tenant, bytes, tasks FROM tenants
	UNION ALL SELECT tenant, 0, 0 FROM (
		SELECT tenant FROM instances UNION SELECT tenant FROM tokens UNION SELECT tenant FROM definitions
		UNION SELECT tenant FROM loaded UNION SELECT tenant FROM keys UNION SELECT tenant FROM namers
	) WHERE tenant <> x'' AND tenant NOT IN (SELECT tenant FROM tenants) ORDER BY tenant`

// Tenants lists who keeps anything, by name. A name, a token or a key is enough.
func (s *Store) Tenants(ctx context.Context) ([]Holding, error) {
	list, err := s.named(ctx)
	if err == nil {
		list = append(list, s.sealing(list)...)
		slices.SortFunc(list, func(a, b Holding) int { return cmp.Compare(a.Tenant, b.Tenant) })
	}
	return list, err
}

// named lists the tenants that are in the database, by name.
func (s *Store) named(ctx context.Context) ([]Holding, error) {
	rows, err := s.readers.db.QueryContext(ctx, holdings)
	list, err := collect(rows, err, func(rows *sql.Rows) (h Holding, err error) {
		var tenant []byte
		err = rows.Scan(&tenant, &h.Bytes, &h.Tasks)
		h.Tenant = string(tenant)
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", explain(err))
	}
	return list, nil
}

// sealing lists the tenants beside those that are known of which there are keys.
func (s *Store) sealing(known []Holding) (more []Holding) {
	if s.codec.ring == nil {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, h := range known {
		seen[h.Tenant] = true
	}
	for _, e := range s.codec.ring.Entries() {
		if e.State != keyring.Destroyed && !seen[e.Tenant] {
			seen[e.Tenant] = true
			more = append(more, Holding{Tenant: e.Tenant})
		}
	}
	return more
}

// Keeps implements [swarm.Store].
func (s *Store) Keeps(ctx context.Context, tenant string) (bool, error) {
	list, err := s.Tenants(ctx)
	return holds(list, tenant), err
}

func holds(list []Holding, tenant string) bool {
	return slices.ContainsFunc(list, func(h Holding) bool { return h.Tenant == tenant })
}

// headers finds the headers of records in the order of their ids. Tasks that
// are on their way out have no instance any more.
const headers = `SELECT r.id, i.tenant, i.swarm, i.instance, t.task, r.header
	FROM turns r CROSS JOIN tasks t ON t.tid = r.id >> 31 CROSS JOIN instances i ON i.iid = t.iid
	WHERE r.id > ? ORDER BY r.id LIMIT ?`

// Modules returns the digests of the modules that records name. It reads every
// record's header, a page at a time.
func (s *Store) Modules(ctx context.Context) (map[string]bool, error) {
	named := map[string]bool{}
	err := s.headers(ctx, func(key swarm.TaskKey, turn int64, body []byte) error {
		var h swarm.TurnHeader
		err := s.opener(key).read(body, spot{inHeaders, "", turn}, &h)
		if err == nil && h.Module != "" {
			named[h.Module] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the modules of records: %w", explain(err))
	}
	return named, nil
}

func (s *Store) headers(ctx context.Context, visit func(key swarm.TaskKey, turn int64, body []byte) error) error {
	stmt, err := s.readers.db.PrepareContext(ctx, headers)
	if err != nil {
		return err
	}
	defer stmt.Close()
	type found struct {
		id   int64
		key  swarm.TaskKey
		body []byte
	}
	for after := int64(0); ; {
		page, err := pageOf(ctx, stmt, func(rows *sql.Rows) (f found, size int, err error) {
			var tenant, name, instance, task []byte
			err = rows.Scan(&f.id, &tenant, &name, &instance, &task, &f.body)
			f.key.InstanceKey = swarm.InstanceKey{Tenant: string(tenant), Swarm: string(name), Instance: string(instance)}
			f.key.Task = string(task)
			return f, len(f.body), err
		}, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			if err := visit(f.key, seqOf(f.id), f.body); err != nil {
				return err
			}
		}
		after = page[len(page)-1].id
	}
}

// Tenants is [Store.Tenants] without those of whom there are only keys: the
// keyring is seen as it was when the reader was opened.
func (r *Reader) Tenants(ctx context.Context) ([]Holding, error) { return r.store.named(ctx) }

// Keeps reports whether the database names a tenant.
func (r *Reader) Keeps(ctx context.Context, tenant string) (bool, error) {
	list, err := r.Tenants(ctx)
	return holds(list, tenant), err
}

// Export is [Store.Export].
func (r *Reader) Export(ctx context.Context, tenant string, out io.Writer) error {
	return r.store.Export(ctx, tenant, out)
}

// Backup is [Store.Backup]. It also copies what a host writes meanwhile, up to
// one moment.
func (r *Reader) Backup(ctx context.Context, path string) error { return r.store.Backup(ctx, path) }
