package sqlite

import (
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

func commitTurns(t *testing.T, s *Store, key swarm.TaskKey, at time.Time) {
	t.Helper()
	task := swarm.Task{Key: key, State: swarm.StateRunning, Created: testTime, Updated: at}
	count := swarm.UsageCount{UsageKey: swarm.UsageKey{Agent: "a"}, UsageSum: swarm.UsageSum{Turns: 1}}
	if err := s.Commit(t.Context(), swarm.Mutation{Task: task, Usage: []swarm.UsageCount{count}}); err != nil {
		t.Fatal(err)
	}
}

// Of a tenant that has more than the bound the oldest minutes go, and nothing of others.
func TestUsageRowsAreBounded(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	testTask := swarm.TaskKey{InstanceKey: testInstance, Task: "t1"}
	other := testTask
	other.Tenant = "other"
	for i := range 10 {
		commitTurns(t, s, testTask, testTime.Add(time.Duration(i)*time.Minute))
	}
	commitTurns(t, s, other, testTime)
	if err := s.purgeUsage(t.Context(), testTime, 4); err != nil {
		t.Fatal(err)
	}
	list, err := s.Usage(t.Context(), swarm.UsageQuery{Tenant: testTask.Tenant, By: swarm.UsageByMinute})
	if err != nil || len(list) != 4 || !list[0].At.Equal(testTime.Add(6*time.Minute).Truncate(time.Minute)) {
		t.Errorf("%d minutes are left, from %v: %v", len(list), list, err)
	}
	if list, err := s.Usage(t.Context(), swarm.UsageQuery{By: swarm.UsageByTenant}); err != nil || len(list) != 2 || list[0].Turns+list[1].Turns != 5 {
		t.Errorf("of all tenants %+v is left: %v", list, err)
	}
}

// Usage is found by tenant and minute, whatever it is summed by.
func TestUsagePlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	for _, by := range []swarm.UsageBy{swarm.UsageByTenant, swarm.UsageByAgent, swarm.UsageByModel, swarm.UsageByMinute, swarm.UsageByDay} {
		text := usageText(swarm.UsageQuery{By: by, Agent: "a", Model: "m"})
		rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() {
			t.Fatal("no plan")
		}
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil || !strings.Contains(detail, "(tenant=? AND minute>? AND minute<?)") {
			t.Errorf("%s\nplan: %s %v", text, detail, err)
		}
		_ = rows.Close()
	}
}
