package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway/state"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// How many hosts write in shuffled order, to how many tenants, and how many values, counters, blobs and records each
// tenant has.
const (
	shuffledHosts   = 8
	shuffledTenants = 3
	shuffledNames   = 6
)

// shuffledSums are what the writers of all hosts have written together.
type shuffledSums struct {
	tokens        [shuffledTenants]atomic.Int64
	counters      [shuffledTenants][shuffledNames]atomic.Int64
	tasks, pruned atomic.Int64
}

// shuffledWriter is one of the writers of a host. It works on tasks in the host's slots.
type shuffledWriter struct {
	*Store
	host, writer int
	rnd          *rand.Rand
	sums         *shuffledSums
	// round counts its tasks.
	round int
}

// TestSharedShuffled: eight hosts that write the same values, counters, blobs and records of tenants at once, each in
// an order of its own, see no error of a deadlock, and what is counted is what was written.
func TestSharedShuffled(t *testing.T) {
	t.Parallel()
	length := 3 * time.Second
	if text := os.Getenv("SKEP_SHUFFLED"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		mustDo(t, err)
	}
	// With the default, 1 s, the test would spend its time on the first deadlocks.
	dsn, sums := pgtest.Schema(t)+"&deadlock_timeout=20ms", &shuffledSums{}
	var hosts []*Store
	var hids []string
	for range shuffledHosts {
		hosts = append(hosts, openShared(t, dsn))
		hids = append(hids, strconv.FormatInt(hosts[len(hosts)-1].HID(), 10))
	}
	exec(t, hosts[0].keyring.db, fmt.Sprintf("INSERT INTO slots SELECT n, (ARRAY[%s])[n %% %d + 1] FROM generate_series(0, 1023) n", strings.Join(hids, ","), shuffledHosts))
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	var all sync.WaitGroup
	for until, n := time.Now().Add(length), 0; n < 2*shuffledHosts; n++ {
		w := &shuffledWriter{Store: hosts[n/2], host: n / 2, writer: n % 2, rnd: rand.New(rand.NewPCG(seed, uint64(n))), sums: sums}
		all.Go(func() {
			for time.Now().Before(until) && !t.Failed() {
				if err := w.writeTask(t); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sums.check(t, hosts[0])
}

// newKey names a new task of a tenant in a slot of the host.
func (w *shuffledWriter) newKey(tenant int) swarm.TaskKey {
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: fmt.Sprint("tenant", tenant), Swarm: "hive", Instance: "user:a"}}
	for key.Task == "" || int(slotOf(key))%shuffledHosts != w.host {
		w.round++
		key.Task = fmt.Sprint("t", w.host, "-", w.writer, "-", w.round)
	}
	return key
}

// chooseNames returns n of the names, shuffled.
func (w *shuffledWriter) chooseNames(n int) []int { return w.rnd.Perm(shuffledNames)[:n] }

// writeTask writes a task from its post to its end.
func (w *shuffledWriter) writeTask(t *testing.T) error {
	tenant := w.rnd.IntN(shuffledTenants)
	key := w.newKey(tenant)
	m := testStep("", 1)
	m.Task.Key = key
	for _, n := range w.chooseNames(4) {
		data := fmt.Append(nil, "blob", n)
		m.KV = append(m.KV, swarm.KVWrite{Scope: swarm.KVScope{Kind: swarm.KVInstance}, Name: fmt.Sprint("value", n), Value: []byte(key.Task)})
		m.Blobs = append(m.Blobs, swarm.Blob{ID: swarm.BlobID{byte(n)}, Data: data})
	}
	post := testPost(key.Task, 1)
	post.Instance = key.InstanceKey
	if _, err := w.Accept(t.Context(), m, post); err != nil {
		return err
	}
	w.sums.tasks.Add(1)
	if _, _, err := w.GrantSpend(t.Context(), key.Tenant, shuffledDay, swarm.Spend{Tokens: 1}, swarm.Spend{Tokens: 1 << 40}); err != nil {
		return err
	}
	for turn, n := range w.chooseNames(3) {
		if err := w.raiseCounter(t, key, int64(turn+1), tenant, n); err != nil {
			return err
		}
	}
	for _, n := range w.chooseNames(3) {
		r := state.Record{Key: testState(key.Tenant, fmt.Sprint("record", n)), Value: []byte(key.Task)}
		if _, err := w.GatewayState().Put(t.Context(), r); err != nil && !errors.Is(err, state.ErrVersion) {
			return err
		}
		if err := w.GatewayState().Delete(t.Context(), r.Key, 0); w.rnd.IntN(2) == 0 && err != nil {
			return err
		}
	}
	end := testStep("", 2)
	end.Task.Key, end.Task.State, end.KV = key, swarm.StateCompleted, m.KV
	w.rnd.Shuffle(len(end.KV), func(i, j int) { end.KV[i], end.KV[j] = end.KV[j], end.KV[i] })
	if err := w.Commit(t.Context(), end); err != nil || w.rnd.IntN(4) > 0 {
		return err
	}
	pruned, err := w.Prune(t.Context(), swarm.PruneRule{
		Tasks: testTime.Add(time.Hour), Keep: func(key swarm.TaskKey) bool { return int(slotOf(key))%shuffledHosts != w.host },
	})
	w.sums.pruned.Add(pruned.Tasks)
	return err
}

// shuffledDay is the day of testTime.
var shuffledDay = testTime.Unix() / (24 * 60 * 60)

// raiseCounter raises a counter of a tenant, unless another host was faster, and spends a token.
func (w *shuffledWriter) raiseCounter(t *testing.T, key swarm.TaskKey, turn int64, tenant, n int) error {
	scope, name := swarm.KVScope{Kind: swarm.KVInstance}, fmt.Sprint("counter", n)
	old, err := w.KVGet(t.Context(), key, scope, name)
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		return err
	}
	number, _ := strconv.Atoi(string(old))
	entry := swarm.Entry{N: 1, Spend: swarm.Spend{Tokens: 1}, Day: shuffledDay}
	raised, err := w.Journal(t.Context(), key, turn, swarm.JournalWrite{
		Day: shuffledDay, Header: &swarm.TurnHeader{},
		Cas: &swarm.KVCas{Scope: scope, Name: name, Expect: old, Value: []byte(strconv.Itoa(number + 1)), Yes: entry, No: entry},
	})
	if err != nil {
		return err
	}
	w.sums.tokens[tenant].Add(1)
	if raised {
		w.sums.counters[tenant][n].Add(1)
	}
	return nil
}

// check compares what a host reads with what was written, and the counters in rows with the rows that they count.
func (a *shuffledSums) check(t *testing.T, s *Store) {
	t.Helper()
	var total int64
	for tenant := range shuffledTenants {
		key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: fmt.Sprint("tenant", tenant), Swarm: "hive", Instance: "user:a"}}
		f, err := s.Footprint(t.Context(), key.Tenant)
		if tokens := a.tokens[tenant].Load(); err != nil || f.Tokens != tokens {
			t.Errorf("%s has spent %d tokens, %v, want %d", key.Tenant, f.Tokens, err, tokens)
		}
		total += f.Tasks
		for n := range shuffledNames {
			got, err := s.KVGet(t.Context(), key, swarm.KVScope{Kind: swarm.KVInstance}, fmt.Sprint("counter", n))
			if want := a.counters[tenant][n].Load(); want > 0 && string(got) != strconv.FormatInt(want, 10) {
				t.Errorf("counter %d of %s is %s, %v, want %d", n, key.Tenant, got, err, want)
			}
		}
	}
	for what, text := range map[string]string{
		"realms":  "SELECT count(*) FROM gateway_realms r WHERE records <> (SELECT count(*) FROM gateway_state s WHERE s.rid = r.rid)",
		"spaces":  "SELECT count(*) FROM spaces p WHERE keys <> (SELECT count(*) FROM kv WHERE kv.sid = p.sid) OR bytes <> (SELECT coalesce(sum(size), 0) FROM kv WHERE kv.sid = p.sid)",
		"records": "SELECT count(*) FROM gateway_state s WHERE NOT EXISTS (SELECT FROM gateway_realms r WHERE r.rid = s.rid)",
		"tenants": "SELECT count(*) FROM tenants n WHERE tasks <> (SELECT count(*) FROM tasks k WHERE k.tenant = n.tenant)",
	} {
		var wrong int
		if err := s.keyring.db.QueryRowContext(t.Context(), text).Scan(&wrong); err != nil || wrong != 0 {
			t.Errorf("%d of the %s are wrong: %v", wrong, what, err)
		}
	}
	made, pruned := a.tasks.Load(), a.pruned.Load()
	if made < shuffledHosts || total != made-pruned {
		t.Errorf("%d hosts have made %d tasks and pruned %d; %d are there", shuffledHosts, made, pruned, total)
	}
	t.Logf("%d tasks, %d of them pruned", made, pruned)
}
