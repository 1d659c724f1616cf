package sqlite

import (
	"context"
	"fmt"
	"math"
)

// Erase implements [swarm.Tenants]. The keys go first: from then on nothing of
// the tenant can be read, in no copy of the file. Where hosts share a server each of them
// blocks the tenant before.
func (s *Store) Erase(ctx context.Context, tenant string) error {
	s.BlockTenant(tenant)
	err := s.RemoveTenant(ctx, tenant)
	if err == nil && s.isShared() {
		s.UnblockTenant(tenant)
	}
	return err
}

// BlockTenant makes writes for a tenant fail that is to be removed. It waits for those that
// are on their way.
func (s *Store) BlockTenant(tenant string) {
	s.setErasing(tenant, true)
	if s.onErase != nil {
		s.onErase(tenant)
	}
}

// UnblockTenant lets a tenant begin anew that was removed.
func (s *Store) UnblockTenant(tenant string) { s.setErasing(tenant, false) }

// RemoveTenant removes a tenant that is blocked on each host that has the store. It is noted before
// it begins. Where no other host does, the tenant begins anew at its end.
func (s *Store) RemoveTenant(ctx context.Context, tenant string) error {
	c := chore{choreErase, tenant}
	err := s.writer.submit(ctx, choreNote{c})
	if err == nil {
		err = s.run(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("erase tenant %q: %w", tenant, addAdvice(err))
	}
	return nil
}

// OnErase names who is told that a tenant is being erased, once nothing is
// written for it any more and before anything of it is removed. It is called
// before the first erasure. Erasures that an earlier host left undone are not
// told.
func (s *Store) OnErase(f func(tenant string)) { s.onErase = f }

// setErasing begins or ends the time in which nothing is written for a tenant. It waits
// for the writes that are on their way.
func (s *Store) setErasing(tenant string, erasing bool) {
	s.gate.Lock()
	defer s.gate.Unlock()
	if erasing {
		s.erasing[tenant] = true
	} else {
		delete(s.erasing, tenant)
	}
}

func (s *Store) erase(ctx context.Context, tenant string) error {
	s.setErasing(tenant, true) // the end of an earlier erasure may have allowed writes
	if s.codec.ring != nil {
		if err := s.codec.ring.Destroy(tenant); err != nil {
			return err
		}
	}
	for done := false; !done; {
		d := &tenantDoom{tenant: tenant}
		if err := s.writer.submit(ctx, d); err != nil {
			return err
		}
		done = d.done
	}
	if err := s.deleteDoomed(ctx); err != nil {
		return err
	}
	for done := false; !done; {
		e := &instanceErasure{tenant: tenant}
		if err := s.writer.submit(ctx, e); err != nil {
			return err
		}
		done = e.done
	}
	if err := s.deleteUsage(ctx, tenant, math.MaxInt64); err != nil {
		return err
	}
	err := s.writer.database.overwriteDeleted(ctx, s, nameErasure(tenant))
	if err == nil && !s.isShared() {
		s.setErasing(tenant, false)
	}
	return err
}

// tenantDoom takes a slice of a tenant's tasks out of reach.
type tenantDoom struct {
	tenant string
	done   bool
}

func (d *tenantDoom) bytes() int { return purgeSlice }

func (d *tenantDoom) apply(ctx context.Context, t *tables) (steps int, err error) {
	r, err := t.reaping.doomTenant.ExecContext(ctx, []byte(d.tenant), purgeSlice)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	d.done = n < purgeSlice
	t.delta.add(d.tenant, 0, -n)
	t.forgetCaches()
	return 0, err
}

// instanceErasure removes what a tenant has in its instances besides tasks, and the
// records of gateways.
type instanceErasure struct {
	tenant string
	done   bool
}

func (e *instanceErasure) bytes() int { return purgeSlice }

func (e *instanceErasure) apply(ctx context.Context, t *tables) (steps int, err error) {
	d := &deletion{tables: t, tenant: e.tenant, left: purgeSlice}
	for _, table := range []*table{instanceTable, realmTable} {
		if err == nil && d.left > 0 {
			_, err = d.rows(ctx, table, node{number: []byte(e.tenant)})
		}
	}
	e.done = d.left > 0
	t.forgetCaches()
	return 0, err
}

// nameErasure removes the names of a tenant without instances, and the chore.
type nameErasure string

func (nameErasure) bytes() int { return purgeSlice }

func (v nameErasure) apply(ctx context.Context, t *tables) (steps int, err error) {
	for _, name := range nameTables {
		if _, err := t.conn.ExecContext(ctx, "DELETE FROM "+name+" WHERE tenant = ?", []byte(v)); err != nil {
			return 0, err
		}
	}
	if err := t.shared.dropGrants(ctx, string(v)); err != nil {
		return 0, err
	}
	t.delta.dropTenant(string(v))
	clear(t.keys)
	// The host may have read these names again after it dropped them from its memory.
	for _, version := range []string{TokensVersion, QuarantineVersion, LoadedVersion} {
		if err := t.shared.raiseVersion(ctx, version); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// flush changes nothing. Its answer means that the writer is done with what came
// before, the care of its log included.
type flush struct{}

func (*flush) bytes() int { return 0 }

func (*flush) apply(context.Context, *tables) (steps int, err error) { return 0, nil }
