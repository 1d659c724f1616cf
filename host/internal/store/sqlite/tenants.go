package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// namingTables are the tables that name tenants, each with an index of them.
var namingTables = []string{"tenants", "instances", "tokens", "definitions", "loaded", "keys", "namers", "gateway_realms", "quarantine"}

// hasTenant has a row if a table names a tenant.
var hasTenant = eachNamingTable("SELECT 1 FROM %s WHERE tenant = ?1") + " LIMIT 1"

// listTenants lists the tenants behind a name that a row names: from each it goes to the next in every index.
var listTenants = `WITH RECURSIVE named (n, name) AS (
		SELECT CAST(1 AS BIGINT), ` + followingTenant("?1") + `
		UNION ALL SELECT n + 1, ` + followingTenant("named.name") + ` FROM named WHERE name IS NOT NULL AND n < CAST(?2 AS BIGINT)
	) SELECT name, coalesce(bytes, 0), coalesce(tasks, 0), coalesce(day, 0), coalesce(made, 0), coalesce(tokens, 0), coalesce(micro_usd, 0)
	FROM named LEFT JOIN tenants ON tenant = name WHERE name IS NOT NULL ORDER BY n`

// followingTenant selects the first tenant behind a name.
func followingTenant(name string) string {
	first := eachNamingTable("SELECT * FROM (SELECT tenant FROM %[1]s WHERE tenant > " + name + " ORDER BY tenant LIMIT 1) AS in_%[1]s")
	return "(SELECT tenant FROM (" + first + ") AS first ORDER BY tenant LIMIT 1)"
}

// eachNamingTable joins the rows of a SELECT from each table that names tenants.
func eachNamingTable(format string) string {
	var texts []string
	for _, table := range namingTables {
		texts = append(texts, fmt.Sprintf(format, table))
	}
	return strings.Join(texts, " UNION ALL ")
}

// TenantFootprints implements [swarm.Tenants].
func (s *Store) TenantFootprints(ctx context.Context, after string, limit int) ([]swarm.TenantFootprint, error) {
	list, err := s.namedTenants(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	list = append(list, s.tenantsOfKeys(after, list)...)
	slices.SortFunc(list, func(a, b swarm.TenantFootprint) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return list[:min(limit, len(list))], nil
}

// namedTenants lists tenants that are in the database, by name. What the host itself keeps is of no tenant.
func (s *Store) namedTenants(ctx context.Context, after string, limit int) ([]swarm.TenantFootprint, error) {
	list, err := readRows(ctx, s.readers.queryText(listTenants, []byte(after), limit), func(rows *sql.Rows) (f swarm.TenantFootprint, err error) {
		var tenant []byte
		err = rows.Scan(&tenant, &f.Bytes, &f.Tasks, &f.Day, &f.Made, &f.Tokens, &f.MicroUSD)
		f.Tenant = string(tenant)
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", addAdvice(err))
	}
	return list, nil
}

// tenantsOfKeys lists the tenants behind a name and beside those that are known of which there are keys.
func (s *Store) tenantsOfKeys(after string, known []swarm.TenantFootprint) (more []swarm.TenantFootprint) {
	if s.codec.ring == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, f := range known {
		seen[f.Tenant] = true
	}
	for _, e := range s.codec.ring.Entries() {
		if e.State != keyring.Destroyed && e.Tenant > after && !seen[e.Tenant] {
			seen[e.Tenant] = true
			more = append(more, swarm.TenantFootprint{Tenant: e.Tenant})
		}
	}
	return more
}

// HasData implements [swarm.Tenants].
func (s *Store) HasData(ctx context.Context, tenant string) (bool, error) {
	if s.codec.ring != nil && s.codec.ring.HasKey(tenant) {
		return true, nil
	}
	return s.namesTenant(ctx, tenant)
}

// namesTenant reports whether the database names a tenant.
func (s *Store) namesTenant(ctx context.Context, tenant string) (bool, error) {
	if tenant == "" {
		return false, nil // of the host itself
	}
	var one int
	err := s.readers.query(s.readers.hasTenant, []byte(tenant)).first(ctx, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, wrapError("look for tenant", tenant, err)
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
	stmt, err := reread(ctx, s.readers.patience, func(ctx context.Context, _ func()) (*sql.Stmt, error) {
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

// Tenants lists the tenants that the database names, by name, without those that have only keys left: the
// keyring is seen as it was when the reader was opened.
func (r *Reader) Tenants(ctx context.Context) ([]swarm.TenantFootprint, error) {
	return r.store.namedTenants(ctx, "", math.MaxInt)
}

// HasData reports whether the database names a tenant.
func (r *Reader) HasData(ctx context.Context, tenant string) (bool, error) {
	return r.store.namesTenant(ctx, tenant)
}

// Export is [Store.Export].
func (r *Reader) Export(ctx context.Context, tenant string, out io.Writer) error {
	return r.store.Export(ctx, tenant, out)
}

// Backup is [Store.Backup]. It also copies what a host writes meanwhile, up to
// one moment.
func (r *Reader) Backup(ctx context.Context, path string) error { return r.store.Backup(ctx, path) }
