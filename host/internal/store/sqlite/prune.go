package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"skep/host/internal/swarm"
)

// Prune implements [swarm.Retention]. It works in slices, and what was cut short
// goes on with the next.
func (s *Store) Prune(ctx context.Context, rule swarm.PruneRule) (swarm.Pruned, error) {
	var p swarm.Pruned
	var err error
	if !rule.Submissions.IsZero() {
		if p.Submissions, err = s.purgeSubmissions(ctx, rule.Submissions); err != nil {
			return p, err
		}
	}
	if !rule.Records.IsZero() {
		if p.Records, err = s.pruneRecords(ctx, stamp(rule.Records)); err != nil {
			return p, fmt.Errorf("prune records: %w", err)
		}
	}
	if !rule.Tasks.IsZero() {
		if p.Tasks, err = s.pruneTasks(ctx, stamp(rule.Tasks), rule); err != nil {
			return p, fmt.Errorf("prune tasks: %w", err)
		}
	}
	if err := s.deleteDoomed(ctx); err != nil {
		return p, fmt.Errorf("prune tasks: %w", err)
	}
	return p, nil
}

// recordPrune is a slice of the records of ended tasks that are too old.
type recordPrune struct {
	before  int64
	deleted int64
	done    bool
}

func (s *Store) pruneRecords(ctx context.Context, before int64) (total int64, err error) {
	for {
		p := &recordPrune{before: before}
		if err := s.writer.submit(ctx, p); err != nil {
			return total, err
		}
		if total += p.deleted; p.done {
			return total, nil
		}
	}
}

func (p *recordPrune) bytes() int { return purgeSlice }

func (p *recordPrune) apply(ctx context.Context, t *tables) (steps int, err error) {
	d := &deletion{tables: t, left: purgeSlice}
	for p.done, p.deleted = false, 0; d.left > 0; {
		err := t.reaping.recorded.QueryRowContext(ctx, p.before).Scan(&d.tid, &d.iid)
		if p.done = errors.Is(err, sql.ErrNoRows); p.done {
			break
		}
		if err == nil {
			d.tenant, err = t.tenantOf(ctx, d.iid)
		}
		if err == nil {
			err = p.prune(ctx, d)
		}
		if err != nil {
			return 0, err
		}
	}
	t.forgetCaches()
	return 0, nil
}

// prune deletes the old records of one task, and notes when the oldest that is
// left has ended.
func (p *recordPrune) prune(ctx context.Context, d *deletion) error {
	n, err := d.rows(ctx, oldTurnTable, node{number: d.tid}, p.before)
	p.deleted += int64(n)
	if err != nil || d.left <= 0 {
		return err
	}
	d.left--
	_, err = d.reaping.setOldest.ExecContext(ctx, pack(d.tid, 0), pack(d.tid, maxSeq), d.tid)
	return err
}

// candidate is a task that may go.
type candidate struct {
	tid, ended int64
	key        swarm.TaskKey
}

// pruneTasks takes ended tasks out of reach, page by page.
func (s *Store) pruneTasks(ctx context.Context, before int64, rule swarm.PruneRule) (total int64, err error) {
	last := candidate{ended: math.MinInt64}
	for {
		page, err := s.endedTasks(ctx, before, last)
		if err != nil || len(page) == 0 {
			return total, err
		}
		last = page[len(page)-1]
		d := &taskDoom{}
		for _, c := range page {
			if rule.Keep == nil || !rule.Keep(c.key) {
				d.tasks = append(d.tasks, c)
			}
		}
		if err := s.writer.submit(ctx, d); err != nil {
			return total, err
		}
		total += d.doomed
		if rule.Gone != nil {
			rule.Gone()
		}
	}
}

func (s *Store) endedTasks(ctx context.Context, before int64, after candidate) ([]candidate, error) {
	return readRows(ctx, s.readers.query(s.readers.ended, before, after.ended, after.ended, after.tid, purgeSlice), func(rows *sql.Rows) (c candidate, err error) {
		var tenant, name, instance, task []byte
		err = rows.Scan(&c.tid, &c.ended, &tenant, &name, &instance, &task)
		c.key.InstanceKey = swarm.InstanceKey{Tenant: string(tenant), Swarm: string(name), Instance: string(instance)}
		c.key.Task = string(task)
		return c, err
	})
}

// taskDoom takes tasks out of reach, unless they moved on since they were found.
type taskDoom struct {
	tasks  []candidate
	doomed int64
}

func (d *taskDoom) bytes() int { return 64 * len(d.tasks) }

func (d *taskDoom) apply(ctx context.Context, t *tables) (steps int, err error) {
	d.doomed = 0
	for _, c := range d.tasks {
		r, err := t.reaping.doom.ExecContext(ctx, c.tid, c.ended)
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		d.doomed += n
		t.delta.add(c.key.Tenant, 0, -n)
	}
	t.forgetCaches()
	return 0, nil
}
