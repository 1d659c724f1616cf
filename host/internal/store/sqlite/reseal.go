package sqlite

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/keyring"
	"skep/host/internal/swarm"
)

// errUnsealed says that there is no keyring.
var errUnsealed = errors.New("the store has no keyring")

// Rotate gives a tenant a new key and seals all that it keeps with it, beside
// normal work. The old key stays in the keyring, retired, because backups name
// it; see DropRetired. A rotation that was cut short goes on at the next open.
func (s *Store) Rotate(ctx context.Context, tenant string) error {
	err := errUnsealed
	if s.codec.ring != nil {
		err = s.rotate(ctx, tenant)
	}
	if err != nil {
		return fmt.Errorf("rotate the key of tenant %q: %w", tenant, explain(err))
	}
	return nil
}

func (s *Store) rotate(ctx context.Context, tenant string) error {
	c := chore{choreReseal, tenant}
	if err := s.writer.do(ctx, note{c}); err != nil {
		return err
	}
	s.gate.Lock() // waits for the writes that are sealed with the old key
	err := s.codec.ring.Rotate(tenant)
	s.gate.Unlock()
	if err != nil {
		return err
	}
	return s.run(ctx, c)
}

// reseal seals with the newest key what is not sealed with it. What is written
// meanwhile is.
func (s *Store) reseal(ctx context.Context, tenant string) error {
	c, leave, err := s.enter(swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant}})
	if err != nil {
		return err
	}
	leave()
	if c.sealer == nil {
		return errUnsealed
	}
	err = s.walk(ctx, tenant, func(items []item) error {
		sw := &swaps{tenant: tenant, key: c.key()}
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
		return s.writer.do(ctx, sw)
	})
	if err != nil {
		return err
	}
	return s.writer.do(ctx, &resealed{tenant, c.key()})
}

// swaps replaces bodies.
type swaps struct {
	tenant string
	key    keyring.ID
	list   []swapped
	size   int
}

type swapped struct {
	item
	fresh []byte
}

// add seals a body anew. It stays packed as it was.
func (sw *swaps) add(c closer, it item) error {
	body := it.body
	if body[0] == codecSealed {
		var err error
		if body, err = c.ring.Open(nil, body[1:], it.place().bind(it.at)); err != nil {
			return fmt.Errorf("%s %d of task %q: %w", it.at.table, it.at.seq, it.key.Task, err)
		}
	}
	c.place = it.place()
	fresh := c.close(body, it.at)
	sw.list = append(sw.list, swapped{it, fresh})
	sw.size += len(fresh)
	return nil
}

func (sw *swaps) bytes() int { return sw.size }

func (sw *swaps) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, sw.key, sw.tenant); err != nil {
		return 0, err
	}
	for _, it := range sw.list {
		args := append(append([]any{it.fresh}, it.row...), it.body)
		r, err := t.conn.ExecContext(ctx, it.swap, args...)
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		if it.swap != swapDigest {
			t.tally.add(sw.tenant, n*int64(len(it.fresh)-len(it.body)), 0)
		}
	}
	t.forget() // it remembers sizes
	return 0, nil
}

// resealed ends a resealing: no body names an older key any more.
type resealed struct {
	tenant string
	key    keyring.ID
}

func (r *resealed) bytes() int { return 0 }

func (r *resealed) apply(ctx context.Context, t *tables) (steps int, err error) {
	if _, err := t.reaping.dropKeys.ExecContext(ctx, []byte(r.tenant), int64(r.key)); err != nil {
		return 0, err
	}
	_, err = t.reaping.dropChore.ExecContext(ctx, choreReseal, []byte(r.tenant))
	clear(t.keys)
	return 0, err
}
