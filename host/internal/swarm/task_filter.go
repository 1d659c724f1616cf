package swarm

import (
	"context"
	"time"
)

// TaskFilter selects tasks of a swarm: tasks of all tenants if it has no Tenant, of all
// instances of a tenant if it has no Instance. Other fields that are zero select all.
type TaskFilter struct {
	InstanceKey
	State State
	// Agent is the entrypoint of the task.
	Agent string
	// Since is when a task was created at the earliest.
	Since time.Time
	// MinMicroUSD is what calls of models have cost at least, in millionths of a dollar.
	MinMicroUSD int64
	// ByCost lists the dearest first, and only tasks that have cost money.
	ByCost bool
}

// Matches reports whether the filter selects a task.
func (f TaskFilter) Matches(t Task) bool {
	return f.Swarm == t.Key.Swarm && (f.Tenant == "" || f.Tenant == t.Key.Tenant) && (f.Instance == "" || f.Instance == t.Key.Instance) &&
		(f.State == "" || f.State == t.State) && (f.Agent == "" || f.Agent == t.Entrypoint) && !t.Created.Before(f.Since) &&
		t.Usage.MicroUSD >= f.MinMicroUSD && (!f.ByCost || t.Usage.MicroUSD > 0)
}

// ListTasks lists tasks; see [TaskLog.ListTasks]. The places where it goes on are sealed.
func (r *Runtime) ListTasks(ctx context.Context, filter TaskFilter, after string, limit int) (tasks []Task, next string, err error) {
	place, err := r.places.open(filter, after)
	if err != nil {
		return nil, "", err
	}
	tasks, next, err = r.store.ListTasks(ctx, filter, place, limit)
	return tasks, r.places.seal(filter, next), err
}
