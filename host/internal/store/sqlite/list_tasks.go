package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"skep/host/internal/swarm"
)

// Bounds of the rows that a list looks at: at once, and for one page.
const (
	listChunk   = 1000
	maxExamined = 2000
)

// listStmts list tasks by their indexes.
type listStmts struct {
	all, ofTenant, ofInstance, inState, givenTo *sql.Stmt
	byCost                                      *sql.Stmt
	body                                        *sql.Stmt
}

func (l *listStmts) texts() map[**sql.Stmt]string {
	from := func(index string) string {
		return `SELECT i.tenant, i.swarm, i.instance, t.task, t.tid, t.state, t.created, t.entrypoint, t.micro_usd
			FROM tasks t INDEXED BY ` + index + ` CROSS JOIN instances i ON i.iid = t.iid WHERE `
	}
	byAge := func(index, where string) string {
		return from(index) + where + `t.created <= ?1 AND (t.created, t.tid) < (?1, ?2) AND t.created >= ?3
			ORDER BY t.created DESC, t.tid DESC LIMIT CAST(?4 AS BIGINT)`
	}
	return map[**sql.Stmt]string{
		&l.all:      byAge("tasks_all", ""),
		&l.ofTenant: byAge("tasks_of_tenant", "t.tenant = ?5 AND "),
		&l.ofInstance: byAge("tasks_by_age",
			"t.iid = (SELECT iid FROM instances WHERE tenant = ?5 AND swarm = ?6 AND instance = ?7) AND "),
		&l.inState: byAge("tasks_in_state", "t.state <> 'completed' AND t.state = ?5 AND "),
		&l.givenTo: byAge("tasks_given_to", "t.entrypoint = ?5 AND "),
		&l.byCost: from("tasks_by_cost") + `t.micro_usd > 0 AND t.micro_usd <= ?1 AND (t.micro_usd, t.tid) < (?1, ?2) AND t.micro_usd >= ?3
			ORDER BY t.micro_usd DESC, t.tid DESC LIMIT CAST(?4 AS BIGINT)`,
		// A task that is on its way out has no instance.
		&l.body: "SELECT body FROM tasks WHERE tid = ? AND iid > 0",
	}
}

// choose returns the statement that looks at the fewest tasks, and its arguments behind those
// that all have.
func (l *listStmts) choose(f swarm.TaskFilter) (*sql.Stmt, []any) {
	switch {
	case f.ByCost:
		return l.byCost, nil
	case f.Instance != "":
		return l.ofInstance, instanceArgs(f.InstanceKey)
	case f.State != "" && f.State != swarm.StateCompleted:
		return l.inState, []any{string(f.State)}
	case f.Tenant != "":
		return l.ofTenant, []any{[]byte(f.Tenant)}
	case f.Agent != "":
		return l.givenTo, []any{[]byte(f.Agent)}
	}
	return l.all, nil
}

// listPlace is a place in a list: the created or micro_usd of a task, and its number.
type listPlace struct{ value, tid int64 }

func (p listPlace) String() string { return fmt.Sprintf("%d.%d", p.value, p.tid) }

// parseListPlace reads a place; the start has the highest of all.
func parseListPlace(text string) (p listPlace, err error) {
	if text == "" {
		return listPlace{math.MaxInt64, math.MaxInt64}, nil
	}
	if n, err := fmt.Sscanf(text, "%d.%d", &p.value, &p.tid); n != 2 || err != nil || text != p.String() {
		return p, &swarm.Refusal{Kind: swarm.ErrInvalid, Text: "the place where the list goes on is none that an earlier page has named"}
	}
	return p, nil
}

// listedTask is what a list sees of a task without its body.
type listedTask struct {
	at    listPlace
	facts swarm.Task
	body  []byte
}

// ListTasks implements [swarm.TaskLog].
func (s *Store) ListTasks(ctx context.Context, filter swarm.TaskFilter, after string, limit int) (tasks []swarm.Task, next string, err error) {
	place, err := parseListPlace(after)
	if err != nil || limit <= 0 {
		return nil, "", err
	}
	found, end, more, err := s.readers.findListed(ctx, filter, place, limit)
	if err != nil {
		return nil, "", wrapError("list tasks of", filter.Swarm, err)
	}
	if found, err = s.readers.readBodies(ctx, found); err != nil {
		return nil, "", wrapError("list tasks of", filter.Swarm, err)
	}
	if more {
		next = end.String()
	}
	tasks, err = decodeReadable(s.log, found, func(l listedTask) (task swarm.Task, err error) {
		err = s.opener(l.facts.Key).read(l.body, spot{inTasks, "", 0}, &task)
		return task, wrapError("read task", l.facts.Key.String(), err)
	})
	return tasks, next, wrapError("list tasks of", filter.Swarm, err)
}

// findListed looks at tasks behind a place until limit of them match, and returns the place where it
// ended, and whether tasks may follow.
func (r *readers) findListed(ctx context.Context, f swarm.TaskFilter, place listPlace, limit int) (found []listedTask, end listPlace, more bool, err error) {
	stmt, args := r.listed.choose(f)
	least := f.MinMicroUSD
	if !f.ByCost {
		least = 0
		if !f.Since.IsZero() {
			least = stamp(f.Since)
		}
	}
	for examined, chunk := 0, limit+1; examined < maxExamined; chunk = listChunk {
		q := r.query(stmt, append([]any{place.value, place.tid, least, chunk}, args...)...)
		page, err := readRows(ctx, q, func(rows *sql.Rows) (listedTask, error) { return scanListed(rows, f.ByCost) })
		if err != nil {
			return nil, place, false, err
		}
		for _, t := range page {
			if matches := f.Matches(t.facts); matches && len(found) == limit {
				return found, place, true, nil
			} else if matches {
				found = append(found, t)
			}
			place = t.at
		}
		if len(page) < chunk {
			return found, place, false, nil
		}
		examined += chunk
	}
	return found, place, true, nil
}

func scanListed(rows *sql.Rows, byCost bool) (l listedTask, err error) {
	var state string
	var created int64
	var entrypoint []byte
	t := &l.facts
	t.Key, err = scanTask(rows, &l.at.tid, &state, &created, &entrypoint, &t.Usage.MicroUSD)
	t.State, t.Created, t.Entrypoint = swarm.State(state), unstamp(created), string(entrypoint)
	if l.at.value = created; byCost {
		l.at.value = t.Usage.MicroUSD
	}
	return l, err
}

// readBodies reads the records of tasks, without those that are gone meanwhile.
func (r *readers) readBodies(ctx context.Context, list []listedTask) (found []listedTask, err error) {
	for _, t := range list {
		err := r.query(r.listed.body, t.at.tid).first(ctx, &t.body)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}
