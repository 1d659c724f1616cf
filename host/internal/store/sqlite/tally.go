package sqlite

import (
	"context"
	"slices"

	"skep/host/internal/swarm"
)

// tally counts what a group adds to the footprints of tenants, so that each is
// written once for all its changes.
type tally struct {
	// change is the part of the change in hand, which may still fail.
	change, group []counted
}

type counted struct {
	tenant string
	swarm.Footprint
}

// add counts for the change in hand.
func (y *tally) add(tenant string, bytes, tasks int64) {
	y.change = merge(y.change, counted{tenant, swarm.Footprint{Bytes: bytes, Tasks: tasks}})
}

// made counts rows of a day for the change in hand.
func (y *tally) made(tenant string, day, rows int64) {
	y.change = merge(y.change, counted{tenant, swarm.Footprint{Day: day, Made: rows}})
}

// spent counts for the change in hand what calls of models have cost.
func (y *tally) spent(tenant string, day int64, s swarm.Spend) {
	y.change = merge(y.change, counted{tenant, swarm.Footprint{Day: day, Spend: s}})
}

// keep ends a change: what it counted is the group's, or nobody's.
func (y *tally) keep(ok bool) {
	if ok {
		for _, c := range y.change {
			y.group = merge(y.group, c)
		}
	}
	y.change = y.change[:0]
}

func (y *tally) reset() { y.change, y.group = y.change[:0], y.group[:0] }

// drop forgets what was counted for a tenant that is gone.
func (y *tally) drop(tenant string) {
	gone := func(c counted) bool { return c.tenant == tenant }
	y.change, y.group = slices.DeleteFunc(y.change, gone), slices.DeleteFunc(y.group, gone)
}

// merge sums by tenant. A group is of few tenants, mostly of one.
func merge(list []counted, c counted) []counted {
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

// settle writes what the group has counted.
func (t *tables) settle(ctx context.Context) error {
	for _, c := range t.tally.group {
		if c.Footprint == (swarm.Footprint{}) {
			continue
		}
		if _, err := t.addFootprint.ExecContext(ctx, []byte(c.tenant), c.Bytes, c.Tasks, c.Day, c.Made, c.Tokens, c.MicroUSD); err != nil {
			return err
		}
	}
	t.tally.reset()
	return nil
}
