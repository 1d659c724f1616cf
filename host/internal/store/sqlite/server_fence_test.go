package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/gateway/state"
	"skep/host/internal/quarantine"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// storeWrite calls a method of a store that writes. Each changes rows that fillForWrites has left.
type storeWrite struct {
	method string
	do     func(ctx context.Context, s *Store) error
}

// plantedKey is a task of plant.
func plantedKey(tenant, task string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant, Swarm: "hive", Instance: "user:a"}, Task: task}
}

// storeWrites are all writes of a store, in an order in which each finds rows to change.
func storeWrites() []storeWrite {
	late := testTime.Add(1000 * time.Hour)
	agent := quarantine.Agent{Tenant: "acme", Swarm: "hive", Name: "bee"}
	return []storeWrite{
		{"Accept", func(ctx context.Context, s *Store) error {
			_, err := s.Accept(ctx, testStep("new", 1), testPost("new", 1))
			return err
		}},
		{"Commit", func(ctx context.Context, s *Store) error { return s.Commit(ctx, testStep("committed", 1)) }},
		{"Journal", func(ctx context.Context, s *Store) error {
			w := swarm.JournalWrite{Header: &swarm.TurnHeader{Agent: "a"}, Entries: []swarm.Entry{{N: 1, Kind: swarm.EntryCall}}}
			_, err := s.Journal(ctx, plantedKey("acme", "open"), 2, w)
			return err
		}},
		{"AddToken", func(ctx context.Context, s *Store) error { return s.AddToken(ctx, fenceToken("new")) }},
		{"UpdateTokens", func(ctx context.Context, s *Store) error {
			i := fenceToken("old")
			i.Revoked = late
			return s.UpdateTokens(ctx, []auth.IssuedToken{i})
		}},
		{"DropTokens", func(ctx context.Context, s *Store) error { return s.DropTokens(ctx, []string{"old"}) }},
		{"AddDefinition", func(ctx context.Context, s *Store) error { return s.AddDefinition(ctx, testDefinition("acme", "new")) }},
		{"DropDefinition", func(ctx context.Context, s *Store) error { return s.DropDefinition(ctx, "acme", "hive", "old") }},
		{"LoadDefinition", func(ctx context.Context, s *Store) error {
			return s.LoadDefinition(ctx, testLoaded("second"), testDefinition("acme", "second"))
		}},
		{"UnloadDefinition", func(ctx context.Context, s *Store) error { return s.UnloadDefinition(ctx, "acme", "hive") }},
		{"ConfineAgent", func(ctx context.Context, s *Store) error {
			return s.ConfineAgent(ctx, quarantine.Confined{Agent: quarantine.Agent{Tenant: "acme", Swarm: "hive", Name: "wasp"}, Since: testTime})
		}},
		{"ReleaseAgent", func(ctx context.Context, s *Store) error {
			_, err := s.ReleaseAgent(ctx, agent)
			return err
		}},
		{"GrantSpend", func(ctx context.Context, s *Store) error {
			_, _, err := s.GrantSpend(ctx, "budgeted", grantDay, swarm.Spend{Tokens: 1}, swarm.Spend{Tokens: 100})
			return err
		}},
		{"Put", func(ctx context.Context, s *Store) error {
			_, err := s.GatewayState().Put(ctx, state.Record{Key: testState("acme", "new"), Value: []byte("{}")})
			return err
		}},
		{"Delete", func(ctx context.Context, s *Store) error {
			return s.GatewayState().Delete(ctx, testState("acme", "open"), 0)
		}},
		{"Purge", func(ctx context.Context, s *Store) error {
			_, err := s.Purge(ctx, late)
			return err
		}},
		{"Prune", func(ctx context.Context, s *Store) error {
			_, err := s.Prune(ctx, swarm.PruneRule{Tasks: late})
			return err
		}},
		{"Reseal", func(ctx context.Context, s *Store) error { return s.Reseal(ctx, "rotated") }},
		{"AddKey", func(ctx context.Context, s *Store) error { return s.AddKey(ctx, "acme") }},
		{"Rotate", func(ctx context.Context, s *Store) error { return s.Rotate(ctx, "rotated") }},
		{"DropRetired", func(ctx context.Context, s *Store) error {
			_, err := s.DropRetired(ctx, time.Now().Add(time.Hour))
			return err
		}},
		{"RemoveTenant", func(ctx context.Context, s *Store) error { return s.RemoveTenant(ctx, "removed") }},
		{"Erase", func(ctx context.Context, s *Store) error { return s.Erase(ctx, "erased") }},
	}
}

// storeReads are the methods that write no row.
var storeReads = strings.Fields(`Backup Blob BlockTenant Claim Close Confined CountRunning DeadLetter DeadLetters Definition Definitions
	End Ended Events Export FindToken Footprint GatewayState HID HasData History HistoryTail Instances KVGet KVList KVUsage ListTasks Load
	LoadQueue Loaded Modules NamedDefinitions OnErase Outboxes PausedTasks Ready Record Records Refresh RunningTasks Secret Secrets
	ServerModules Size Stats StopWaiting Submission Submissions TaskBlob Tasks TenantFootprints Tokens UnblockTenant Undone Usage
	Get List`)

func fenceToken(id string) auth.IssuedToken {
	return auth.IssuedToken{ID: id, Principal: auth.Principal{Tenant: "acme", ID: "ann"}, SHA256: [32]byte{id[0]}, Created: testTime}
}

// takeAllSlots makes all slots a host's.
func takeAllSlots(t *testing.T, s *Store) {
	t.Helper()
	exec(t, s.keyring.db, fmt.Sprintf("INSERT INTO slots SELECT n, %d FROM generate_series(0, %d) n ON CONFLICT (slot) DO UPDATE SET hid = excluded.hid", s.HID(), slot.Tasks-1))
	mustDo(t, s.Refresh(t.Context()))
}

// fillForWrites writes the rows that storeWrites change.
func fillForWrites(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for tenant, task := range map[string]string{"acme": "open", "rotated": "t", "removed": "t", "erased": "t"} {
		plant(t, s, tenant, task, planted)
	}
	ended := testStep("ended", 1)
	ended.Task.State = swarm.StateCompleted
	mustDo(t, s.Commit(ctx, ended))
	mustDo(t, s.AddToken(ctx, fenceToken("old")))
	mustDo(t, s.AddDefinition(ctx, testDefinition("acme", "old")))
	mustDo(t, s.LoadDefinition(ctx, testLoaded("first"), testDefinition("acme", "first")))
	mustDo(t, s.ConfineAgent(ctx, quarantine.Confined{Agent: quarantine.Agent{Tenant: "acme", Swarm: "hive", Name: "bee"}, Since: testTime}))
	_, err := s.GatewayState().Put(ctx, state.Record{Key: testState("acme", "expired"), Value: []byte("{}"), Expires: testTime})
	mustDo(t, err)
	for range 2 {
		mustDo(t, s.Rotate(ctx, "spare"))
	}
	mustDo(t, s.AddKey(ctx, "rotated"))
}

// digestRows returns a digest of the rows of each table, without the tables hosts and slots.
func digestRows(t *testing.T, s *Store) map[string]string {
	t.Helper()
	ctx, found := t.Context(), map[string]string{}
	rows, err := s.keyring.db.QueryContext(ctx, "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r' AND relname NOT IN ('hosts', 'slots')")
	mustDo(t, err)
	var names []string
	for rows.Next() {
		var name string
		mustDo(t, rows.Scan(&name))
		names = append(names, name)
	}
	mustDo(t, rows.Err())
	for _, name := range names {
		var digest string
		text := fmt.Sprintf("SELECT md5(coalesce(string_agg(CAST(x AS TEXT), '|' ORDER BY CAST(x AS TEXT)), '')) FROM %s x", name)
		mustDo(t, s.keyring.db.QueryRowContext(ctx, text).Scan(&digest))
		found[name] = digest
	}
	return found
}

// TestFencedWrites: no write of a host that was fenced changes a row, whichever method writes, and each returns why. The
// same write of a host that is alive changes rows.
func TestFencedWrites(t *testing.T) {
	t.Parallel()
	dsn, writes := pgtest.Schema(t), storeWrites()
	known := map[string]bool{}
	for _, name := range storeReads {
		known[name] = true
	}
	for _, w := range writes {
		known[w.method] = true
	}
	for _, port := range []reflect.Type{reflect.TypeFor[*Store](), reflect.TypeFor[state.Store]()} {
		for i := range port.NumMethod() {
			if name := port.Method(i).Name; !known[name] {
				t.Errorf("%s.%s stands neither in storeWrites nor in storeReads", port, name)
			}
		}
	}
	alive := openShared(t, dsn)
	takeAllSlots(t, alive)
	fillForWrites(t, alive)
	for _, w := range writes {
		fenced := openShared(t, dsn)
		takeAllSlots(t, fenced)
		exec(t, alive.keyring.db, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", fenced.HID()))
		before := digestRows(t, alive)
		if err := w.do(t.Context(), fenced); !errors.Is(err, swarm.ErrFenced) {
			t.Errorf("%s of a host that was fenced = %v", w.method, err)
		}
		if changed := changedTables(before, digestRows(t, alive)); len(changed) > 0 {
			t.Errorf("%s of a host that was fenced changes %v", w.method, changed)
		}
	}
	takeAllSlots(t, alive)
	for _, w := range writes {
		before := digestRows(t, alive)
		if err := w.do(t.Context(), alive); err != nil {
			t.Errorf("%s = %v", w.method, err)
		}
		if len(changedTables(before, digestRows(t, alive))) == 0 {
			t.Errorf("%s changes no row: it shows nothing of a host that was fenced", w.method)
		}
	}
}

// changedTables names the tables whose digests differ.
func changedTables(before, after map[string]string) []string {
	names := slices.Sorted(maps.Keys(after))
	return slices.DeleteFunc(names, func(name string) bool { return before[name] == after[name] })
}
