package sqlite

import (
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// BenchmarkListTasks reads the first page of lists of 1,000,000 tasks, of which every thousandth
// has failed and every hundredth has cost money. The tasks are of one tenant.
func BenchmarkListTasks(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if err := s.Commit(b.Context(), testStep("t", 1)); err != nil {
		b.Fatal(err)
	}
	_, err = s.writer.conn.ExecContext(b.Context(), `INSERT INTO tasks (iid, task, state, created, body, tenant, entrypoint, micro_usd)
		WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000000)
		SELECT iid, CAST(n AS BLOB), CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'completed' END, created + n, body, tenant,
			CASE WHEN n % 10 = 0 THEN CAST('clerk' AS BLOB) ELSE CAST('boss' AS BLOB) END, CASE WHEN n % 100 = 0 THEN n ELSE 0 END FROM n CROSS JOIN tasks`)
	if err != nil {
		b.Fatal(err)
	}
	all := swarm.InstanceKey{Swarm: testInstance.Swarm}
	tenant := swarm.InstanceKey{Tenant: testInstance.Tenant, Swarm: testInstance.Swarm}
	for name, f := range map[string]swarm.TaskFilter{
		"all": {InstanceKey: all}, "tenant": {InstanceKey: tenant}, "own": {InstanceKey: testInstance},
		"failed": {InstanceKey: all, State: swarm.StateFailed}, "completed": {InstanceKey: all, State: swarm.StateCompleted},
		"none-paused": {InstanceKey: tenant, State: swarm.StatePaused},
		"agent":       {InstanceKey: all, Agent: "clerk"}, "no-agent": {InstanceKey: all, Agent: "nobody"}, "tenant-no-agent": {InstanceKey: tenant, Agent: "nobody"},
		"since": {InstanceKey: all, Since: testTime}, "cost": {InstanceKey: all, ByCost: true, MinMicroUSD: 500000},
		"failed-no-agent": {InstanceKey: all, State: swarm.StateFailed, Agent: "nobody"}, "cost-no-agent": {InstanceKey: all, ByCost: true, Agent: "nobody"},
		"cost-since": {InstanceKey: tenant, ByCost: true, Since: testTime.Add(time.Hour)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.ListTasks(b.Context(), f, "", 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
