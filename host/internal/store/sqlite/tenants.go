package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// TenantUsage is a tenant and what it keeps.
type TenantUsage struct {
	Tenant string
	swarm.Footprint
}

// tenantsQuery lists all tenants that a row names. What the host itself keeps is of
// no tenant.
const tenantsQuery = `SELECT tenant, bytes, tasks, day, made, tokens, micro_usd FROM tenants
	UNION ALL SELECT tenant, 0, 0, 0, 0, 0, 0 FROM (
		SELECT tenant FROM instances UNION SELECT tenant FROM tokens UNION SELECT tenant FROM definitions
		UNION SELECT tenant FROM loaded UNION SELECT tenant FROM keys UNION SELECT tenant FROM namers
		UNION SELECT tenant FROM gateway_realms UNION SELECT tenant FROM quarantine
	) AS named WHERE tenant <> x'' AND tenant NOT IN (SELECT tenant FROM tenants) ORDER BY tenant`

// Tenants lists who keeps anything, by name. A name, a token or a key is enough.
func (s *Store) Tenants(ctx context.Context) ([]TenantUsage, error) {
	list, err := s.namedTenants(ctx)
	if err == nil {
		list = append(list, s.tenantsOfKeys(list)...)
		slices.SortFunc(list, func(a, b TenantUsage) int { return cmp.Compare(a.Tenant, b.Tenant) })
	}
	return list, err
}

// namedTenants lists the tenants that are in the database, by name.
func (s *Store) namedTenants(ctx context.Context) ([]TenantUsage, error) {
	list, err := readRows(ctx, s.readers.queryText(tenantsQuery), func(rows *sql.Rows) (h TenantUsage, err error) {
		var tenant []byte
		err = rows.Scan(&tenant, &h.Bytes, &h.Tasks, &h.Day, &h.Made, &h.Tokens, &h.MicroUSD)
		h.Tenant = string(tenant)
		return h, err
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", addAdvice(err))
	}
	return list, nil
}

// tenantsOfKeys lists the tenants beside those that are known of which there are keys.
func (s *Store) tenantsOfKeys(known []TenantUsage) (more []TenantUsage) {
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
			more = append(more, TenantUsage{Tenant: e.Tenant})
		}
	}
	return more
}

// HasData implements [swarm.Tenants].
func (s *Store) HasData(ctx context.Context, tenant string) (bool, error) {
	list, err := s.Tenants(ctx)
	return containsTenant(list, tenant), err
}

// TenantNames implements [swarm.Tenants].
func (s *Store) TenantNames(ctx context.Context) (names []string, err error) {
	list, err := s.Tenants(ctx)
	for _, h := range list {
		names = append(names, h.Tenant)
	}
	return names, err
}

func containsTenant(list []TenantUsage, tenant string) bool {
	return slices.ContainsFunc(list, func(h TenantUsage) bool { return h.Tenant == tenant })
}

// headersQuery finds the headers of records in the order of their ids. Tasks that
// are on their way out have no instance any more.
const headersQuery = `SELECT r.id, i.tenant, i.swarm, i.instance, t.task, r.header
	FROM turns r CROSS JOIN tasks t ON t.tid = r.id >> 31 CROSS JOIN instances i ON i.iid = t.iid
	WHERE r.id > ? ORDER BY r.id LIMIT CAST(? AS BIGINT)`

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
		if errors.Is(err, swarm.ErrErasing) {
			return nil // the record is about to go
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the modules of records: %w", addAdvice(err))
	}
	return named, nil
}

func (s *Store) headers(ctx context.Context, visit func(key swarm.TaskKey, turn int64, body []byte) error) error {
	stmt, err := reread(ctx, s.readers, func(ctx context.Context, _ func()) (*sql.Stmt, error) {
		return s.readers.db.PrepareContext(ctx, headersQuery)
	})
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
		page, isLast, err := pageOf(ctx, s.readers, stmt, func(rows *sql.Rows) (f found, size int, err error) {
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
		if isLast {
			return nil
		}
		after = page[len(page)-1].id
	}
}

// Tenants is [Store.Tenants] without tenants that have only keys left: the
// keyring is seen as it was when the reader was opened.
func (r *Reader) Tenants(ctx context.Context) ([]TenantUsage, error) {
	return r.store.namedTenants(ctx)
}

// HasData reports whether the database names a tenant.
func (r *Reader) HasData(ctx context.Context, tenant string) (bool, error) {
	list, err := r.Tenants(ctx)
	return containsTenant(list, tenant), err
}

// Export is [Store.Export].
func (r *Reader) Export(ctx context.Context, tenant string, out io.Writer) error {
	return r.store.Export(ctx, tenant, out)
}

// Backup is [Store.Backup]. It also copies what a host writes meanwhile, up to
// one moment.
func (r *Reader) Backup(ctx context.Context, path string) error { return r.store.Backup(ctx, path) }
