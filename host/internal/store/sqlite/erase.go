package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Erase implements [swarm.Store]. The keys go first: from then on nothing of
// the tenant can be read, in no copy of the file.
func (s *Store) Erase(ctx context.Context, tenant string) error {
	s.gate.Lock() // waits for the writes that are on their way
	s.erasing[tenant] = true
	s.gate.Unlock()
	if s.onErase != nil {
		s.onErase(tenant)
	}
	c := chore{choreErase, tenant}
	err := s.writer.do(ctx, note{c})
	if err == nil {
		err = s.run(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("erase tenant %q: %w", tenant, explain(err))
	}
	return nil
}

// OnErase names who is told that a tenant is being erased, once nothing is
// written for it any more and before anything of it is removed. It is called
// before the first erasure. Erasures that an earlier host left undone are not
// told.
func (s *Store) OnErase(f func(tenant string)) { s.onErase = f }

func (s *Store) erase(ctx context.Context, tenant string) error {
	if s.codec.ring != nil {
		if err := s.codec.ring.Destroy(tenant); err != nil {
			return err
		}
	}
	for done := false; !done; {
		d := &doomTenant{tenant: tenant}
		if err := s.writer.do(ctx, d); err != nil {
			return err
		}
		done = d.done
	}
	if err := s.reap(ctx, true); err != nil {
		return err
	}
	for done := false; !done; {
		e := &emptying{tenant: tenant}
		if err := s.writer.do(ctx, e); err != nil {
			return err
		}
		done = e.done
	}
	if err := s.blank(ctx); err != nil {
		return err
	}
	if err := s.writer.do(ctx, vanishing(tenant)); err != nil {
		return err
	}
	// The log still has the pages as they were.
	s.writer.wal.empty.Store(true)
	for range 2 { // what is done with a log follows the answer
		if err := s.writer.do(ctx, &flush{}); err != nil {
			return err
		}
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	delete(s.erasing, tenant)
	return nil
}

// doomTenant takes a slice of a tenant's tasks out of reach.
type doomTenant struct {
	tenant string
	done   bool
}

func (d *doomTenant) bytes() int { return purgeSlice }

func (d *doomTenant) apply(ctx context.Context, t *tables) (steps int, err error) {
	r, err := t.reaping.doomTenant.ExecContext(ctx, []byte(d.tenant), purgeSlice)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	d.done = n < purgeSlice
	t.tally.add(d.tenant, 0, -n)
	t.forget()
	return 0, err
}

// emptying removes what a tenant has in its instances besides tasks.
type emptying struct {
	tenant string
	done   bool
}

func (e *emptying) bytes() int { return purgeSlice }

func (e *emptying) apply(ctx context.Context, t *tables) (steps int, err error) {
	return 0, t.securely(ctx, e.slice)
}

func (e *emptying) slice(ctx context.Context, t *tables) error {
	d := &deletion{tables: t, tenant: e.tenant, left: purgeSlice}
	for e.done = false; d.left > 0; {
		err := t.reaping.instance.QueryRowContext(ctx, []byte(e.tenant)).Scan(&d.iid)
		if e.done = errors.Is(err, sql.ErrNoRows); e.done {
			return nil
		}
		if err == nil {
			err = d.instance(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// instance deletes an instance without tasks.
func (d *deletion) instance(ctx context.Context) error {
	r, err := d.reaping.posts.ExecContext(ctx, d.iid, d.left)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if d.left -= int(n); err != nil || d.left <= 0 {
		return err
	}
	if err := d.spaces(ctx, d.reaping.anySpace, d.iid); err != nil || d.left <= 0 {
		return err
	}
	d.left--
	d.forget()
	_, err = d.reaping.dropInstance.ExecContext(ctx, d.iid)
	return err
}

// vanishing removes the names of a tenant without instances, and the chore.
type vanishing string

func (vanishing) bytes() int { return purgeSlice }

func (v vanishing) apply(ctx context.Context, t *tables) (steps int, err error) {
	return 0, t.securely(ctx, v.whole)
}

func (v vanishing) whole(ctx context.Context, t *tables) error {
	tenant := []byte(v)
	_, err := t.reaping.dropTenant.ExecContext(ctx, tenant)
	if err == nil {
		_, err = t.issued.dropTenant.ExecContext(ctx, tenant)
	}
	if err == nil {
		_, err = t.blobbing.dropNamer.ExecContext(ctx, tenant)
	}
	if err == nil {
		err = t.defined.eraseTenant(ctx, tenant)
	}
	if err == nil {
		_, err = t.reaping.dropKeys.ExecContext(ctx, tenant, 0)
	}
	if err == nil {
		_, err = t.reaping.dropChore.ExecContext(ctx, choreErase, tenant)
	}
	if err == nil {
		_, err = t.reaping.dropChore.ExecContext(ctx, choreReseal, tenant)
	}
	t.tally.drop(string(v))
	clear(t.keys)
	return err
}

// flush changes nothing. Its answer says that the writer is done with what came
// before, the care of its log included.
type flush struct{}

func (*flush) bytes() int { return 0 }

func (*flush) apply(context.Context, *tables) (steps int, err error) { return 0, nil }
