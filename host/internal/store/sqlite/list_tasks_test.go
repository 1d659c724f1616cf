package sqlite

import (
	"fmt"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// A page ends after a bounded number of tasks, and the next one goes on there, so that no list
// is slow.
func TestListLooksAtFewTasks(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	raw := s.writer.conn
	st := testStep("rare", 1)
	st.Task.Entrypoint, st.Task.Created = "rare", testTime.Add(-time.Hour)
	if err := s.Commit(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	_, err := raw.ExecContext(t.Context(), `INSERT INTO tasks (iid, task, state, created, body, tenant, entrypoint)
		WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?) SELECT iid, CAST(n AS BLOB), 'completed', ?, x'', tenant, x''
		FROM n CROSS JOIN instances`, 2*maxExamined, stamp(testTime))
	if err != nil {
		t.Fatal(err)
	}
	f := swarm.TaskFilter{InstanceKey: testInstance, Agent: "rare"}
	after, pages := "", []int{}
	for {
		page, next, err := s.ListTasks(t.Context(), f, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if pages = append(pages, len(page)); next == "" {
			break
		}
		after = next
	}
	if got := fmt.Sprint(pages); got != "[0 1]" && got != "[0 0 1]" {
		t.Errorf("the pages have %s tasks", got)
	}
}
