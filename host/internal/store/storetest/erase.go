package storetest

import (
	"errors"
	"fmt"
	"testing"

	"skep/host/internal/swarm"
)

func mustErase(t *testing.T, s Store, tenant string) {
	t.Helper()
	if err := s.Erase(t.Context(), tenant); err != nil {
		t.Fatalf("Erase(%q) = %v", tenant, err)
	}
}

func wantErased(t *testing.T, s Store, st *taskBuilder) {
	t.Helper()
	key := st.key()
	same(t, "lines of the erased", bodies(t, export(t, s, key.Tenant)), []string(nil))
	same(t, "footprint of the erased", footprint(t, s, key.Tenant), swarm.Footprint{})
	wantGone(t, s, key)
	_, err := s.Submission(t.Context(), key.InstanceKey, "rest", key.Task)
	wantError(t, "Submission", err, swarm.ErrNotFound)
	for _, scope := range []swarm.KVScope{{Kind: swarm.KVAgent, Agent: "a"}, {Kind: swarm.KVInstance}} {
		wantNoValue(t, s, key, scope, "k")
	}
	wantNoBlob(t, s, key.Tenant, "of all")
	wantNoState(t, s, stateKey(key.Tenant, key.Swarm+"/"+key.Instance+"/"+key.Task))
	instances, err := s.Instances(t.Context(), key.Tenant, key.Swarm)
	same(t, "instances", []any{len(instances), err}, []any{0, nil})
	if _, runs := mustClaim(t, s)[key]; runs {
		t.Error("Claim() lists a task of the erased")
	}
}

func eraseWhole(t *testing.T, s Store) {
	acme := swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:bob"}
	st := fillTask(t, s, acme, "t1", "MARK")
	for i := range 30 {
		k := acme
		k.Instance = name(i)
		fillTask(t, s, k, "t", "MARK")
	}
	mustErase(t, s, "acme")
	wantErased(t, s, st)
	mustErase(t, s, "acme")
	mustErase(t, s, "nobody")
}

func eraseIsolation(t *testing.T, s Store) {
	for i, k := range strangers {
		fillTask(t, s, k, "t", fmt.Sprintf("MARK%02d", i))
	}
	victim := strangers[0].Tenant
	before := map[string]string{}
	for _, k := range strangers {
		before[k.Tenant] = export(t, s, k.Tenant)
	}
	mustErase(t, s, victim)
	for tenant, text := range before {
		if tenant != victim && export(t, s, tenant) != text {
			t.Errorf("tenant %q is not as it was", tenant)
		}
	}
}

func eraseReborn(t *testing.T, s Store) {
	for range 3 {
		st := fillTask(t, s, alice, "t1", "MARK")
		same(t, "events", len(mustEvents(t, s, st.key())), 1)
		same(t, "record", string(mustRecord(t, s, st.key(), 1).Entries[0].Answer), "MARK answer")
		mustErase(t, s, alice.Tenant)
		wantErased(t, s, st)
	}
}

// eraseFence writes while the tenant is erased: what was accepted before is
// gone, what comes after is whole, and in between is nothing.
func eraseFence(t *testing.T, s Store) {
	for i := range 20 {
		fillTask(t, s, alice, name(i), "MARK")
	}
	done := make(chan error, 1)
	go func() { done <- s.Erase(t.Context(), alice.Tenant) }()
	var after []string
	for i := 100; ; i++ {
		id := name(i)
		err := s.Commit(t.Context(), newTask(alice, id).mutation())
		if err != nil && !errors.Is(err, swarm.ErrErasing) {
			t.Fatal(err)
		}
		select {
		case erased := <-done:
			if erased != nil {
				t.Fatal(erased)
			}
			id := name(i + 1)
			mustCommit(t, s, newTask(alice, id).mutation())
			after = append(after, id)
		default:
			continue
		}
		break
	}
	for _, id := range after {
		mustLoad(t, s, swarm.TaskKey{InstanceKey: alice, Task: id})
	}
	for i := range 20 {
		wantGone(t, s, swarm.TaskKey{InstanceKey: alice, Task: name(i)})
	}
	if got := len(bodies(t, export(t, s, alice.Tenant))); int64(got) != footprint(t, s, alice.Tenant).Tasks {
		t.Errorf("%d lines of %d tasks that have nothing but a record", got, footprint(t, s, alice.Tenant).Tasks)
	}
}
