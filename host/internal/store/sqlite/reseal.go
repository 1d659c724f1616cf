package sqlite

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/store/keyring"
)

// errUnsealed: there is no keyring.
var errUnsealed = errors.New("the store has no keyring")

// Rotate gives a tenant a new key and seals all that it keeps with it, beside
// normal work. The old key stays in the keyring, retired, because backups name
// it; see DropRetired. A rotation that was cut short goes on at the next open.
func (s *Store) Rotate(ctx context.Context, tenant string) error {
	if err := s.AddKey(ctx, tenant); err != nil {
		return err
	}
	return s.Reseal(ctx, tenant)
}

// AddKey gives a tenant a new key, and notes that what is sealed with older ones is to be resealed.
// Where hosts share a server, each of them reads the new key before [Store.Reseal].
func (s *Store) AddKey(ctx context.Context, tenant string) error {
	err := errUnsealed
	if s.codec.ring != nil {
		err = s.writer.submit(ctx, choreNote{chore{choreReseal, tenant}})
	}
	if err == nil {
		s.gate.Lock() // waits for the writes that are sealed with the old key
		err = s.codec.ring.Rotate(tenant)
		s.gate.Unlock()
	}
	return rotateError(tenant, err)
}

// Reseal seals all that a tenant keeps with its newest key, if that is noted.
func (s *Store) Reseal(ctx context.Context, tenant string) error {
	return rotateError(tenant, s.run(ctx, chore{choreReseal, tenant}))
}

func rotateError(tenant string, err error) error {
	if err != nil {
		return fmt.Errorf("rotate the key of tenant %q: %w", tenant, addAdvice(err))
	}
	return nil
}

// reseal seals with the newest key what is not sealed with it. What is written
// meanwhile is.
func (s *Store) reseal(ctx context.Context, tenant string) error {
	c, leave, err := s.beginWrite(tenantKey(tenant))
	if err != nil {
		return err
	}
	leave()
	if c.sealer == nil {
		return errUnsealed
	}
	err = s.walk(ctx, tenant, func(items []item) error {
		sw := &bodySwap{tenant: tenant, key: c.key()}
		for _, it := range items {
			if it.body == nil || sealedWith(it.body) == c.key() {
				continue
			}
			if err := sw.add(c, it); err != nil {
				return err
			}
		}
		if len(sw.list) == 0 {
			return nil
		}
		return s.writer.submit(ctx, sw)
	})
	if err != nil {
		return err
	}
	return s.writer.submit(ctx, &resealEnd{tenant, c.key()})
}

// bodySwap replaces bodies.
type bodySwap struct {
	tenant string
	key    keyring.ID
	list   []swappedBody
	size   int
}

type swappedBody struct {
	item
	fresh []byte
}

// add seals a body anew. It stays packed as it was.
func (sw *bodySwap) add(c closer, it item) error {
	body := it.body
	if sealed, _ := sealedIn(body); sealed != nil {
		var err error
		if body, err = c.ring.Open(nil, sealed, it.place().bind(it.at)); err != nil {
			return fmt.Errorf("%s %d of task %q: %w", it.at.table, it.at.seq, it.key.Task, err)
		}
	}
	c.place = it.place()
	fresh := c.close(body, it.at)
	sw.list = append(sw.list, swappedBody{it, fresh})
	sw.size += len(fresh)
	return nil
}

func (sw *bodySwap) bytes() int { return sw.size }

func (sw *bodySwap) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, sw.key, sw.tenant); err != nil {
		return 0, err
	}
	for _, it := range sw.list {
		args := append(append([]any{it.fresh}, it.rowKey...), it.body)
		r, err := t.conn.ExecContext(ctx, it.table.swapText(it.column), args...)
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		if !it.column.uncounted {
			t.delta.add(sw.tenant, n*int64(len(it.fresh)-len(it.body)), 0)
		}
	}
	t.forgetCaches() // it remembers sizes
	return 0, nil
}

// resealEnd ends a resealing: no body names an older key any more.
type resealEnd struct {
	tenant string
	key    keyring.ID
}

func (r *resealEnd) bytes() int { return 0 }

func (r *resealEnd) apply(ctx context.Context, t *tables) (steps int, err error) {
	if _, err := t.reaping.dropKeys.ExecContext(ctx, []byte(r.tenant), int64(r.key)); err != nil {
		return 0, err
	}
	_, err = t.reaping.dropChore.ExecContext(ctx, choreReseal, []byte(r.tenant))
	clear(t.keys)
	return 0, err
}
