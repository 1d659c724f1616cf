package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"skep/host/internal/swarm"
)

// usageStmts write the table of usage. What is in it is not sealed: it is names and numbers.
type usageStmts struct {
	add, drop *sql.Stmt
}

func (u *usageStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&u.add: `INSERT INTO usage AS u (tenant, minute, agent, model, cause, turns, failures, fuel, cpu, tokens, output, micro_usd)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, minute, agent, model, cause) DO UPDATE SET
			turns = u.turns + excluded.turns, failures = u.failures + excluded.failures, fuel = u.fuel + excluded.fuel, cpu = u.cpu + excluded.cpu,
			tokens = u.tokens + excluded.tokens, output = u.output + excluded.output, micro_usd = u.micro_usd + excluded.micro_usd`,
		&u.drop: `DELETE FROM usage WHERE (tenant, minute, agent, model, cause) IN (
			SELECT tenant, minute, agent, model, cause FROM usage WHERE tenant = ? AND minute <= ? LIMIT CAST(? AS BIGINT))`,
	}
}

// usageKey is the key of a row of usage.
type usageKey struct {
	tenant string
	minute int64
	swarm.UsageKey
}

func (k usageKey) compare(other usageKey) int {
	return cmp.Or(cmp.Compare(k.tenant, other.tenant), cmp.Compare(k.minute, other.minute),
		cmp.Compare(k.Agent, other.Agent), cmp.Compare(k.Model, other.Model), cmp.Compare(k.Cause, other.Cause))
}

// usageDelta is what a group adds to usage, so that each row is written once for all its changes.
type usageDelta struct {
	// change is the part of the change in hand, which may still fail.
	change []usageChange
	group  map[usageKey]swarm.UsageSum
}

type usageChange struct {
	usageKey
	swarm.UsageSum
}

// add counts for the change in hand. at is its time.
func (y *usageDelta) add(tenant string, at int64, counts []swarm.UsageCount) {
	for _, c := range counts {
		y.change = append(y.change, usageChange{usageKey{tenant, at / int64(time.Minute), c.UsageKey}, c.UsageSum})
	}
}

func (y *usageDelta) endChange(ok bool) {
	if ok && len(y.change) > 0 && y.group == nil {
		y.group = map[usageKey]swarm.UsageSum{}
	}
	for _, c := range y.change {
		if ok {
			y.group[c.usageKey] = y.group[c.usageKey].Add(c.UsageSum)
		}
	}
	y.change = y.change[:0]
}

func (y *usageDelta) reset() {
	y.change = y.change[:0]
	clear(y.group)
}

// dropTenant forgets what was counted for a tenant that is gone.
func (y *usageDelta) dropTenant(tenant string) {
	y.change = slices.DeleteFunc(y.change, func(c usageChange) bool { return c.tenant == tenant })
	maps.DeleteFunc(y.group, func(k usageKey, _ swarm.UsageSum) bool { return k.tenant == tenant })
}

// maxUsage bounds what a group adds to a number, so that the sum of a minute stays in the range of
// its column.
const maxUsage = int64(1) << 50

// writeUsage writes what the group has used, in one order on all hosts, so that none waits for
// another in a circle.
func (t *tables) writeUsage(ctx context.Context) error {
	group := t.delta.used.group
	for _, key := range slices.SortedFunc(maps.Keys(group), usageKey.compare) {
		args := []any{[]byte(key.tenant), key.minute, []byte(key.Agent), []byte(key.Model), []byte(key.Cause)}
		s := group[key]
		for _, n := range []int64{s.Turns, s.Failures, s.Fuel, int64(s.CPU), s.Tokens, s.Output, s.MicroUSD} {
			args = append(args, max(-maxUsage, min(n, maxUsage)))
		}
		if _, err := t.metering.add.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// usageDrop deletes a slice of a tenant's usage up to a minute.
type usageDrop struct {
	tenant  string
	upTo    int64
	deleted int64
}

func (*usageDrop) bytes() int { return purgeSlice }

func (d *usageDrop) apply(ctx context.Context, t *tables) (steps int, err error) {
	r, err := t.metering.drop.ExecContext(ctx, []byte(d.tenant), d.upTo, purgeSlice)
	if err != nil {
		return 0, err
	}
	d.deleted, err = r.RowsAffected()
	return 0, err
}

// deleteUsage deletes the usage of a tenant up to a minute.
func (s *Store) deleteUsage(ctx context.Context, tenant string, upTo int64) error {
	for {
		d := &usageDrop{tenant: tenant, upTo: upTo}
		if err := s.writer.submit(ctx, d); err != nil || d.deleted < purgeSlice {
			return err
		}
	}
}

// purgeUsage deletes the usage that is too old, and of each tenant the oldest minutes beyond the
// bound of its rows.
func (s *Store) purgeUsage(ctx context.Context, now time.Time, bound int) error {
	old := stamp(now.Add(-swarm.UsageKept))/int64(time.Minute) - 1
	err := s.readers.eachUsageTenant(ctx, func(tenant string) error {
		for _, find := range []query{
			s.readers.queryText("SELECT minute FROM usage WHERE tenant = ? AND minute <= ? ORDER BY minute DESC LIMIT 1", []byte(tenant), old),
			s.readers.queryText("SELECT minute FROM usage WHERE tenant = ? ORDER BY minute DESC LIMIT 1 OFFSET CAST(? AS BIGINT)", []byte(tenant), bound),
		} {
			var upTo int64
			err := find.first(ctx, &upTo)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err == nil {
				err = s.deleteUsage(ctx, tenant, upTo)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("purge usage: %w", addAdvice(err))
	}
	return nil
}
