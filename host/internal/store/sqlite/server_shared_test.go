package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"skep/host/internal/gateway/state"
	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
	"skep/host/internal/swarm/slot"
)

// openShared opens a server that other hosts of the test share, with keys.
func openShared(t *testing.T, dsn string) *Store {
	t.Helper()
	s, err := OpenServer(t.Context(), Server{DSN: dsn, Shared: true}, Options{Keyring: &keyring.Options{KEK: bytes.Repeat([]byte{7}, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some are fenced
	return s
}

// testKey is the task of testStep.
func testKey(task string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: testInstance, Task: task}
}

// give makes the slots of tasks a host's.
func give(t *testing.T, s *Store, tasks ...string) {
	t.Helper()
	var slots []slot.Slot
	for _, task := range tasks {
		slots = append(slots, slotOf(testKey(task)))
		const text = "INSERT INTO slots VALUES (CAST(? AS BIGINT), ?) ON CONFLICT (slot) DO UPDATE SET hid = excluded.hid"
		if _, err := s.keyring.db.ExecContext(t.Context(), text, int64(slots[len(slots)-1]), s.HID()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Claim(t.Context(), slots); err != nil {
		t.Fatal(err)
	}
}

// TestSharedKeys: hosts that make the first keys of tenants at once have the same ones, and read
// what the others have sealed.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	hosts := []*Store{openShared(t, dsn), openShared(t, dsn), openShared(t, dsn)}
	const tenants = 8
	var all sync.WaitGroup
	for i, s := range hosts {
		all.Go(func() {
			for n := range tenants {
				key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: fmt.Sprint("tenant", n), Swarm: "hive", Instance: "user:a"}, Task: fmt.Sprint("t", i)}
				const text = "INSERT INTO slots VALUES (CAST(? AS BIGINT), ?) ON CONFLICT (slot) DO UPDATE SET hid = excluded.hid"
				if _, err := s.keyring.db.ExecContext(t.Context(), text, int64(slotOf(key)), s.HID()); err != nil {
					t.Error(err)
				}
				m := testStep("", 1)
				m.Task.Key = key
				if err := s.Commit(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, s := range append(hosts, openShared(t, dsn)) {
		for n := range tenants {
			for i := range hosts {
				key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: fmt.Sprint("tenant", n), Swarm: "hive", Instance: "user:a"}, Task: fmt.Sprint("t", i)}
				if _, err := s.Load(t.Context(), key); err != nil {
					t.Errorf("a task of another host: %v", err)
				}
			}
		}
	}
	if n := len(hosts[2].codec.ring.Entries()); n != tenants {
		t.Errorf("%d keys for %d tenants", n, tenants)
	}
}

// TestSharedSubmission: of two hosts that accept one key at once, one accepts it, and the other
// gets what the first has.
func TestSharedSubmission(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	hosts := []*Store{openShared(t, dsn), openShared(t, dsn)}
	const rounds = 50
	for n := range rounds {
		var all sync.WaitGroup
		var accepted [2]error
		var first [2]swarm.Submission
		for i, s := range hosts {
			task := fmt.Sprint("t", n, "-", i)
			give(t, s, task)
			post := testPost(task, 1)
			post.Key = fmt.Sprint("key", n)
			all.Go(func() { first[i], accepted[i] = s.Accept(t.Context(), testStep(task, 1), post) })
		}
		all.Wait()
		won := 0
		for i, err := range accepted {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, swarm.ErrDuplicate) || first[i].Task != fmt.Sprint("t", n, "-", 1-i):
				t.Fatalf("Accept() = %+v, %v", first[i], err)
			}
		}
		if won != 1 {
			t.Fatalf("%d of two hosts have accepted one key", won)
		}
	}
}

// TestSharedSlots: a host writes to no task of another host's slot. What it writes beside goes on.
func TestSharedSlots(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := openShared(t, dsn), openShared(t, dsn)
	give(t, a, "of-a")
	give(t, b, "of-b")
	var all sync.WaitGroup
	var mine, foreign error
	all.Go(func() { mine = a.Commit(t.Context(), testStep("of-a", 1)) })
	all.Go(func() { foreign = a.Commit(t.Context(), testStep("of-b", 1)) })
	all.Wait()
	if mine != nil || !errors.Is(foreign, swarm.ErrFenced) {
		t.Errorf("Commit() to the host's slot = %v, to another's = %v", mine, foreign)
	}
	if _, err := b.Load(t.Context(), testKey("of-b")); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("a task that was refused: %v", err)
	}
	give(t, a, "of-b")
	if err := a.Commit(t.Context(), testStep("of-b", 1)); err != nil {
		t.Error(err)
	}
}

// TestSharedClaim: a host goes on with the running tasks in its slots, as the last host has left
// them.
func TestSharedClaim(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := openShared(t, dsn), openShared(t, dsn)
	give(t, a, "t1", "t2")
	for seq := range int64(2) {
		for _, task := range []string{"t1", "t2"} {
			if err := a.Commit(t.Context(), testStep(task, seq+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	give(t, b, "t2")
	running, err := b.Claim(t.Context(), []slot.Slot{slotOf(testKey("t2"))})
	if err != nil || len(running) != 1 || running[0].Task != "t2" {
		t.Fatalf("Claim() = %+v, %v", running, err)
	}
	if err := b.Commit(t.Context(), testStep("t2", 3)); err != nil {
		t.Fatal(err)
	}
	give(t, a, "t2") // it remembers the task as it was
	ended := testStep("t2", 4)
	ended.Task.State = swarm.StateCompleted
	if err := a.Commit(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if running, err := a.Claim(t.Context(), []slot.Slot{slotOf(testKey("t2"))}); err != nil || len(running) != 0 {
		t.Errorf("Claim() of an ended task = %+v, %v", running, err)
	}
}

// TestSharedCas: a counter that two hosts raise at once misses nothing, and no number of a journal
// is given twice.
func TestSharedCas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	hosts := []*Store{openShared(t, dsn), openShared(t, dsn)}
	const tasks, raises = 4, 40
	scope := swarm.KVScope{Kind: swarm.KVInstance}
	var all sync.WaitGroup
	for i, s := range hosts {
		for n := range tasks {
			task := fmt.Sprint("t", i, "-", n)
			give(t, s, task)
			if err := s.Commit(t.Context(), testStep(task, 1)); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				for turn := int64(1); turn <= raises; {
					old, err := s.KVGet(t.Context(), testKey(task), scope, "n")
					if err != nil && !errors.Is(err, swarm.ErrNotFound) {
						t.Error(err)
						return
					}
					number, _ := strconv.Atoi(string(old))
					w := swarm.JournalWrite{
						Header: &swarm.TurnHeader{},
						Cas:    &swarm.KVCas{Scope: scope, Name: "n", Expect: old, Value: []byte(strconv.Itoa(number + 1)), Yes: swarm.Entry{N: 1}, No: swarm.Entry{N: 1}},
					}
					ok, err := s.Journal(t.Context(), testKey(task), turn*1000+int64(number), w)
					if err != nil {
						t.Error(err)
						return
					}
					if ok {
						turn++
					}
				}
			})
		}
	}
	all.Wait()
	got, err := hosts[0].KVGet(t.Context(), testKey("t0-0"), scope, "n")
	if want := len(hosts) * tasks * raises; err != nil || string(got) != strconv.Itoa(want) {
		t.Errorf("the counter is %s, %v, want %d", got, err, want)
	}
	var double int
	if err := hosts[0].readers.db.QueryRow("SELECT count(*) - count(DISTINCT jid) FROM turns").Scan(&double); err != nil || double != 0 {
		t.Errorf("%d turns share a journal, %v", double, err)
	}
}

// TestSharedAlone: a host that shares nothing starts beside no other, and beside none that has closed.
func TestSharedAlone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := openShared(t, dsn), openShared(t, dsn)
	if _, err := OpenServer(t.Context(), Server{DSN: dsn}, Options{}); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "[cluster]") {
		t.Errorf("OpenServer() beside hosts that share it = %v", err)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	// It is tried once only: no lock is free later than Close returns.
	for range 20 {
		one := openShared(t, dsn)
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		var free bool
		err = conn.QueryRow(t.Context(), "SELECT pg_try_advisory_lock('hosts'::regclass::oid::bigint)").Scan(&free)
		if err := errors.Join(err, conn.Close(t.Context())); err != nil || !free {
			t.Fatalf("the lock of a host that has closed is free: %v, %v", free, err)
		}
	}
}

// TestSharedErase: what hosts have forgotten of a tenant that one of them removes is not there again, and two
// that destroy keys at once undo nothing of each other.
func TestSharedErase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	hosts := []*Store{openShared(t, dsn), openShared(t, dsn), openShared(t, dsn)}
	tenants := []string{"acme", "blue", "coal"}
	for round := range 4 {
		for i, s := range hosts {
			for _, tenant := range tenants {
				d := testDefinition(tenant, fmt.Sprint("one-", i, round))
				d.Body = []byte(`"` + planted + `"`)
				if err := s.AddDefinition(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, s := range hosts {
			for _, tenant := range tenants {
				s.BlockTenant(tenant)
			}
		}
		var all sync.WaitGroup
		for i, s := range hosts {
			all.Go(func() {
				if err := s.RemoveTenant(t.Context(), tenants[i]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, s := range hosts {
			if err := s.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, e := range s.codec.ring.Entries() {
				if e.State != keyring.Destroyed && slices.Contains(tenants, e.Tenant) {
					t.Errorf("round %d: key %s of tenant %s is %s", round, e.ID, e.Tenant, e.State)
				}
			}
			for _, tenant := range tenants {
				if kept, err := s.HasData(t.Context(), tenant); kept || err != nil {
					t.Errorf("round %d: tenant %s keeps something: %v, %v", round, tenant, kept, err)
				}
			}
		}
		for _, s := range hosts {
			for _, tenant := range tenants {
				s.UnblockTenant(tenant)
			}
		}
	}
}

// TestWriteBeforeBegun: a host that has not begun among others writes nothing for a tenant. The key that it has may be
// destroyed: what it seals would have the tenant, which has begun anew, erased once more.
func TestWriteBeforeBegun(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	other := openShared(t, dsn)
	record := func(name string) state.Record {
		return state.Record{Key: testState("acme", name), Value: []byte(planted)}
	}
	if _, err := other.GatewayState().Put(t.Context(), record("old")); err != nil {
		t.Fatal(err)
	}
	begun := false
	opts := Options{Keyring: &keyring.Options{KEK: bytes.Repeat([]byte{7}, 32)}, Begun: func() bool { return begun }}
	s, err := OpenServer(t.Context(), Server{DSN: dsn, Shared: true}, opts)
	mustDo(t, err)
	t.Cleanup(func() { _ = s.Close() })
	other.BlockTenant("acme")
	mustDo(t, other.RemoveTenant(t.Context(), "acme"))
	other.UnblockTenant("acme")
	_, err = other.GatewayState().Put(t.Context(), record("new"))
	mustDo(t, err)
	if _, err := s.GatewayState().Put(t.Context(), record("early")); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("a record before the host has begun: %v", err)
	}
	d := testDefinition("acme", "early")
	if err := s.LoadDefinition(t.Context(), Loaded{Tenant: "acme", Swarm: d.Swarm, Text: []byte("{}")}, d); !errors.Is(err, swarm.ErrUnavailable) {
		t.Errorf("a definition before the host has begun: %v", err)
	}
	if err := s.AddDefinition(t.Context(), testDefinition("", "operator")); err != nil {
		t.Errorf("the operator's definition: %v", err)
	}
	mustDo(t, s.Refresh(t.Context()))
	begun = true
	_, err = s.GatewayState().Put(t.Context(), record("late"))
	mustDo(t, err)
	if erase, _, err := openShared(t, dsn).Undone(t.Context()); len(erase) != 0 || err != nil {
		t.Errorf("tenants that are to be erased once more: %v, %v", erase, err)
	}
}

// TestSharedAtOnce: hosts that open an empty schema at once make its tables once.
func TestSharedAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			s, err := OpenServer(t.Context(), Server{DSN: dsn, Shared: true}, Options{Keyring: &keyring.Options{KEK: bytes.Repeat([]byte{7}, 32)}})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = s.Close() })
		})
	}
	all.Wait()
}
