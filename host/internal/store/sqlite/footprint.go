package sqlite

import (
	"context"
	"slices"
	"strings"

	"skep/host/internal/swarm"
)

// footprintDelta counts what a group adds to the footprints of tenants, so that each is
// written once for all its changes.
type footprintDelta struct {
	// change is the part of the change in hand, which may still fail.
	change, group []tenantDelta
	// used is what the changes have used.
	used usageDelta
}

type tenantDelta struct {
	tenant string
	swarm.Footprint
}

// add counts for the change in hand.
func (y *footprintDelta) add(tenant string, bytes, tasks int64) {
	y.change = addDelta(y.change, tenantDelta{tenant, swarm.Footprint{Bytes: bytes, Tasks: tasks}})
}

// addRows counts rows of a day for the change in hand.
func (y *footprintDelta) addRows(tenant string, day, rows int64) {
	y.change = addDelta(y.change, tenantDelta{tenant, swarm.Footprint{Day: day, Made: rows}})
}

// addSpend counts for the change in hand what calls of models have cost.
func (y *footprintDelta) addSpend(tenant string, day int64, s swarm.Spend) {
	y.change = addDelta(y.change, tenantDelta{tenant, swarm.Footprint{Day: day, Spend: s}})
}

// bytes is what was counted for a tenant and is not written yet.
func (y *footprintDelta) bytes(tenant string) (n int64) {
	for _, list := range [][]tenantDelta{y.change, y.group} {
		for _, c := range list {
			if c.tenant == tenant {
				n += c.Bytes
			}
		}
	}
	return n
}

// endChange ends a change: what it counted is the group's, or dropped.
func (y *footprintDelta) endChange(ok bool) {
	if ok {
		for _, c := range y.change {
			y.group = addDelta(y.group, c)
		}
	}
	y.change = y.change[:0]
	y.used.endChange(ok)
}

func (y *footprintDelta) reset() {
	y.change, y.group = y.change[:0], y.group[:0]
	y.used.reset()
}

// dropTenant forgets what was counted for a tenant that is gone.
func (y *footprintDelta) dropTenant(tenant string) {
	gone := func(c tenantDelta) bool { return c.tenant == tenant }
	y.change, y.group = slices.DeleteFunc(y.change, gone), slices.DeleteFunc(y.group, gone)
	y.used.dropTenant(tenant)
}

// addDelta sums by tenant. A group is of few tenants, mostly of one.
func addDelta(list []tenantDelta, c tenantDelta) []tenantDelta {
	for i := range list {
		if list[i].tenant == c.tenant {
			list[i].Bytes += c.Bytes
			list[i].Tasks += c.Tasks
			if c.Day > list[i].Day {
				list[i].Day, list[i].Made, list[i].Spend = c.Day, 0, swarm.Spend{}
			}
			if c.Day == list[i].Day {
				list[i].Made += c.Made
				list[i].Spend = list[i].Add(c.Spend)
			}
			return list
		}
	}
	return append(list, c)
}

// writeFootprints writes what the group has counted.
func (t *tables) writeFootprints(ctx context.Context) error {
	if t.shared != nil { // hosts count in one order, so that none waits for another in a circle
		slices.SortFunc(t.delta.group, func(a, b tenantDelta) int { return strings.Compare(a.tenant, b.tenant) })
	}
	for _, c := range t.delta.group {
		if c.Footprint == (swarm.Footprint{}) {
			continue
		}
		if _, err := t.addFootprint.ExecContext(ctx, []byte(c.tenant), c.Bytes, c.Tasks, c.Day, c.Made, c.Tokens, c.MicroUSD); err != nil {
			return err
		}
		if err := t.shared.spendGrant(ctx, c); err != nil {
			return err
		}
	}
	if err := t.writeUsage(ctx); err != nil {
		return err
	}
	t.delta.reset()
	return nil
}
