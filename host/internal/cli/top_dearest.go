package cli

import (
	"cmp"
	"context"
	"slices"

	"skep/host/client"
)

// Bounds of the dearest tasks: how many are shown, and how many pages of the store's list by cost are
// read for them, in which tasks that have ended may stand before them.
const (
	maxTopDearest = 5
	maxTopPages   = 10
)

// readDearest adds the tasks of a state that have cost most, by the store's list of them.
func (t *topView) readDearest(ctx context.Context, state string) error {
	q := client.TaskQuery{Scope: t.scope, Tenant: t.tenant, State: state, Order: "cost"}
	for left, pages := maxTopDearest, 0; left > 0 && pages < maxTopPages; pages++ {
		tasks, next, err := t.client.SelectTasks(ctx, q, left)
		if err != nil {
			return err
		}
		for _, task := range tasks {
			t.addDearest(task)
		}
		if left, q.After = left-len(tasks), next; next == "" {
			break
		}
	}
	return nil
}

// addDearest adds a task to the dearest, unless it stands there.
func (t *topView) addDearest(task client.Task) {
	one := topTask{task.Tenant, task.Instance, task.ID, task.State, task.StartTime, task.Usage.Turns, task.Usage.MicroUSD}
	is := func(other topTask) bool {
		return other.Tenant == one.Tenant && other.Instance == one.Instance && other.Task == one.Task
	}
	list := &t.lists.Dearest
	if slices.ContainsFunc(*list, is) {
		return
	}
	*list = append(*list, one)
	slices.SortStableFunc(*list, func(a, b topTask) int {
		return cmp.Or(cmp.Compare(b.MicroUSD, a.MicroUSD), cmp.Compare(b.Turns, a.Turns))
	})
	*list = (*list)[:min(len(*list), maxTopDearest)]
}
