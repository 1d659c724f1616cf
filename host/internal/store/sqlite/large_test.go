package sqlite

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// A task of many messages reads as a small one does: what a page costs is
// counted in the rows that the engine steps over, which the plans show, and
// here in that all of it comes back by pages.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	n := int64(100_000)
	if testing.Short() {
		n = 10_000
	}
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	st := testStep("t1", 1)
	key := st.Task.Key
	for from := int64(1); from <= n; from += 1000 {
		st.Events, st.History = nil, nil
		for i := from; i < from+1000; i++ {
			st.Events = append(st.Events, swarm.Event{Seq: i, Name: "e", Time: testTime})
			st.History = append(st.History, swarm.AgentEntry{Agent: "a", Entry: abi.HistoryEntry{Seq: i, Kind: abi.KindNote, Note: "x"}})
		}
		st.Task.Cursor = from + 999
		mustDo(t, s.Commit(t.Context(), st))
	}
	for _, after := range []int64{0, n / 2, n - 10} {
		events, err := s.Events(t.Context(), key, after, 10)
		if err != nil || len(events) != 10 || events[0].Seq != after+1 {
			t.Errorf("events after %d are %d, %v", after, len(events), err)
		}
	}
	tail, err := s.HistoryTail(t.Context(), key, "a", abi.HistoryTailEntries, abi.HistoryTailBytes)
	if err != nil || len(tail) != abi.HistoryTailEntries || tail[len(tail)-1].Seq != n {
		t.Errorf("tail is %d entries, %v", len(tail), err)
	}
	if got := int64(strings.Count(export(t, s, testInstance.Tenant), "\n")); got != 2*n+3 {
		t.Errorf("export has %d lines, want %d", got, 2*n+3)
	}
	wantCounted(t, s)
	mustDo(t, s.Erase(t.Context(), testInstance.Tenant))
	wantCounted(t, s)
}

// Whatever is written, refused, replaced and pruned: the counters of tenants
// equal what there is.
func TestCounters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	states := []swarm.State{swarm.StateRunning, swarm.StateCompleted, swarm.StatePaused, swarm.StateFailed}
	for i := range 400 {
		st := testStep(fmt.Sprint("t", rand.IntN(10)), int64(1+rand.IntN(60)))
		st.Task.Key.Tenant = fmt.Sprint("tenant", rand.IntN(3))
		st.Task.State, st.Task.Owner = states[rand.IntN(len(states))], strings.Repeat("o", rand.IntN(100))
		st.States = []swarm.AgentState{{Agent: "a", State: []byte(`"` + strings.Repeat("s", rand.IntN(100)) + `"`)}}
		if rand.IntN(3) == 0 {
			st.States[0].State = nil
		}
		scope := swarm.KVScope{Kind: []swarm.KVKind{swarm.KVTask, swarm.KVAgent, swarm.KVInstance}[rand.IntN(3)], Agent: "a"}
		st.KV = []swarm.KVWrite{{Scope: scope, Name: fmt.Sprint(rand.IntN(4)), Value: make([]byte, rand.IntN(50)), Delete: rand.IntN(3) == 0}}
		st.Record = &swarm.Record{N: int64(1 + rand.IntN(60)), Header: &swarm.TurnHeader{Input: make([]byte, rand.IntN(3000))}}
		if rand.IntN(2) == 0 {
			st.Record.End = &swarm.TurnEnd{At: testTime}
		}
		st.Record.Entries = []swarm.Entry{{N: 1, Kind: swarm.EntryCall}}
		_ = s.Commit(t.Context(), st) // many of them take a number twice
		if i%100 == 99 {
			_, err := s.Prune(t.Context(), swarm.PruneRule{Records: testTime.Add(1)})
			mustDo(t, err)
			wantCounted(t, s)
		}
	}
	mustDo(t, s.Erase(t.Context(), "tenant0"))
	_, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: testTime.Add(time.Hour)})
	mustDo(t, err)
	wantCounted(t, s)
	mustDo(t, s.Close())
	wantCounted(t, openTest(t, dir))
}

// wantCounted compares the counters of tenants with what they count.
func wantCounted(t *testing.T, s *Store) {
	t.Helper()
	counts := `SELECT hex(tenant), sum(bytes), sum(tasks) FROM (SELECT tenant, bytes, tasks FROM (
		SELECT iid, length(body) AS bytes, 1 AS tasks FROM tasks
		UNION ALL SELECT iid, length(q.body), 0 FROM queue q JOIN tasks t ON t.tid = q.id >> 31
		UNION ALL SELECT iid, length(e.body), 0 FROM events e JOIN tasks t ON t.tid = e.id >> 31
		UNION ALL SELECT iid, coalesce(length(a.state), 0), 0 FROM agents a JOIN tasks t USING (tid)
		UNION ALL SELECT iid, length(h.body), 0 FROM history h JOIN agents a ON a.aid = h.id >> 31 JOIN tasks t USING (tid)
		UNION ALL SELECT iid, length(header) + length(input) + coalesce(length(finish), 0), 0 FROM turns r JOIN tasks t ON t.tid = r.id >> 31
		UNION ALL SELECT iid, length(j.body), 0 FROM journal j JOIN turns r ON r.jid = j.id >> 31 JOIN tasks t ON t.tid = r.id >> 31
		UNION ALL SELECT iid, length(name) + length(value), 0 FROM kv JOIN spaces USING (sid)
	) JOIN instances USING (iid)
		UNION ALL SELECT tenant, length(name) + length(body), 0 FROM blobs
		UNION ALL SELECT tenant, length(name) + length(value), 0 FROM gateway_state JOIN gateway_realms USING (rid)
		UNION ALL SELECT tenant, length(body), 0 FROM namers) GROUP BY tenant`
	kept := "SELECT hex(tenant), bytes, tasks FROM tenants WHERE bytes <> 0 OR tasks <> 0 ORDER BY tenant"
	read := func(query string) (list []string) {
		rows, err := s.readers.db.QueryContext(t.Context(), query)
		list, err = collect(rows, err, func(rows *sql.Rows) (string, error) {
			var tenant string
			var bytes, tasks int64
			err := rows.Scan(&tenant, &bytes, &tasks)
			return fmt.Sprint(tenant, " ", bytes, " ", tasks), err
		})
		mustDo(t, err)
		return list
	}
	if got, want := read(kept), read(counts+" ORDER BY tenant"); !slices.Equal(got, want) {
		t.Errorf("counters are %q, want %q", got, want)
	}
}
