package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/swarm"
)

var kvCases = cases{
	"values are set, replaced and deleted": kvWrites,
	"scopes do not mix":                    kvScopes,
	"names come in pages":                  kvList,
	"quotas hold":                          kvQuotas,
	"a scope can be freed":                 kvFreed,
	"a cas decides and journals":           kvCas,
	"one of many cas wins":                 kvCasRace,
	"a cas that does not fit is refused":   kvCasQuota,
	"a bad scope is refused":               kvBadScope,
}

var agentScope = swarm.KVScope{Kind: swarm.KVAgent, Agent: "calc"}

func put(scope swarm.KVScope, name, value string) swarm.KVWrite {
	return swarm.KVWrite{Scope: scope, Name: name, Value: []byte(value)}
}

func commitKV(t *testing.T, s Store, st *taskBuilder, writes ...swarm.KVWrite) {
	t.Helper()
	step := st.mutation()
	step.KV = writes
	mustCommit(t, s, step)
}

func wantValue(t *testing.T, s Store, key swarm.TaskKey, scope swarm.KVScope, name, want string) {
	t.Helper()
	got, err := s.KVGet(t.Context(), key, scope, name)
	if err != nil || string(got) != want {
		t.Errorf("KVGet(%+v, %q) = %q, %v, want %q", scope, name, got, err, want)
	}
}

func wantNoValue(t *testing.T, s Store, key swarm.TaskKey, scope swarm.KVScope, name string) {
	t.Helper()
	_, err := s.KVGet(t.Context(), key, scope, name)
	wantError(t, "KVGet of what is not there", err, swarm.ErrNotFound)
}

func wantUsage(t *testing.T, s Store, key swarm.TaskKey, scope swarm.KVScope, keys, bytes int64) {
	t.Helper()
	got, err := s.KVUsage(t.Context(), key, scope)
	same(t, "usage", []any{got, err}, []any{swarm.KVUsage{Keys: keys, Bytes: bytes}, nil})
}

func kvWrites(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	wantNoValue(t, s, st.key(), agentScope, "a")
	wantUsage(t, s, st.key(), agentScope, 0, 0)
	commitKV(t, s, st, put(agentScope, "a", "1"), put(agentScope, "b", ""), put(agentScope, "", "\x00\xff"))
	wantValue(t, s, st.key(), agentScope, "a", "1")
	wantValue(t, s, st.key(), agentScope, "b", "")
	wantValue(t, s, st.key(), agentScope, "", "\x00\xff")
	wantUsage(t, s, st.key(), agentScope, 3, 5)
	commitKV(t, s, st, put(agentScope, "a", "first"), put(agentScope, "a", "22"),
		swarm.KVWrite{Scope: agentScope, Name: "b", Delete: true}, swarm.KVWrite{Scope: agentScope, Name: "none", Delete: true})
	wantValue(t, s, st.key(), agentScope, "a", "22")
	wantNoValue(t, s, st.key(), agentScope, "b")
	wantUsage(t, s, st.key(), agentScope, 2, 5)
}

// kvScopes writes into every scope that two agents can reach in two tasks of
// strangers, and wants each value where it was put.
func kvScopes(t *testing.T, s Store) {
	want := map[string]func(){}
	for i, k := range strangers {
		for _, task := range []string{"t", "u"} {
			st := oneTask(t, s, k, task)
			for _, agent := range []string{"a", ""} {
				for _, scope := range []swarm.KVScope{{Kind: swarm.KVTask, Agent: agent}, {Kind: swarm.KVAgent, Agent: agent}, {Kind: swarm.KVInstance, Agent: agent}} {
					id, value := fmt.Sprint(i, scope, task), fmt.Sprint(i, task, scope)
					switch scope.Kind {
					case swarm.KVAgent:
						id = fmt.Sprint(i, scope)
					case swarm.KVInstance:
						id = fmt.Sprint(i)
					}
					commitKV(t, s, st, put(scope, "name", value))
					want[id] = func() { wantValue(t, s, st.key(), scope, "name", value) }
				}
			}
		}
	}
	for _, check := range want {
		check()
	}
	wantUsage(t, s, swarm.TaskKey{InstanceKey: strangers[0]}, swarm.KVScope{Kind: swarm.KVInstance, Agent: "other"}, 1, int64(len("name")+len(fmt.Sprint(0, "u", swarm.KVScope{Kind: swarm.KVInstance}))))
	wantNoValue(t, s, swarm.TaskKey{InstanceKey: alice, Task: "t"}, agentScope, "name")
}

func kvList(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	var writes []swarm.KVWrite
	for _, name := range []string{"", "a", "a/1", "a/2", "a/2/x", "a0", "b", "\xff", "\xff\xff", "é"} {
		writes = append(writes, put(agentScope, name, "v"))
	}
	commitKV(t, s, st, writes...)
	commitKV(t, s, st, put(swarm.KVScope{Kind: swarm.KVAgent, Agent: "stats"}, "a/9", "v"))
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []string
	}{
		{"", "", 100, []string{"", "a", "a/1", "a/2", "a/2/x", "a0", "b", "é", "\xff", "\xff\xff"}},
		{"a/", "", 100, []string{"a/1", "a/2", "a/2/x"}},
		{"a/", "a/1", 1, []string{"a/2"}},
		{"a/", "a/2/x", 100, nil},
		{"a", "a/9", 100, []string{"a0"}},
		{"\xff", "", 100, []string{"\xff", "\xff\xff"}},
		{"c", "", 100, nil},
		{"", "", 0, nil},
		{"", "", -1, nil},
	} {
		got, err := s.KVList(t.Context(), st.key(), agentScope, c.prefix, c.after, c.limit)
		same(t, fmt.Sprintf("names %q after %q, at most %d", c.prefix, c.after, c.limit), []any{got, err}, []any{c.want, nil})
	}
}

func wantQuota(t *testing.T, s Store, st *taskBuilder, writes ...swarm.KVWrite) {
	t.Helper()
	bad := newTask(st.key().InstanceKey, st.key().Task)
	bad.task.State = swarm.StateFailed
	step := bad.mutation()
	step.KV = writes
	before := mustLoad(t, s, st.key())
	wantError(t, "Commit beyond a quota", s.Commit(t.Context(), step), swarm.ErrQuota)
	same(t, "snapshot", mustLoad(t, s, st.key()), before)
}

func kvQuotas(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	long := strings.Repeat("x", swarm.MaxKVValue)
	wantQuota(t, s, st, put(agentScope, "a", long+"x"))
	wantQuota(t, s, st, put(agentScope, strings.Repeat("n", swarm.MaxKVName+1), "v"))
	commitKV(t, s, st, put(agentScope, strings.Repeat("n", swarm.MaxKVName), long))

	many := swarm.KVScope{Kind: swarm.KVTask, Agent: "many"}
	var writes []swarm.KVWrite
	for i := range swarm.MaxKVKeys {
		writes = append(writes, put(many, name(i), "v"))
	}
	commitKV(t, s, st, writes...)
	wantQuota(t, s, st, put(many, "one more", "v"))
	wantUsage(t, s, st.key(), many, swarm.MaxKVKeys, swarm.MaxKVKeys*int64(len(name(0))+1))
	commitKV(t, s, st, put(many, "one more", "v"), swarm.KVWrite{Scope: many, Name: name(0), Delete: true})

	large := swarm.KVScope{Kind: swarm.KVInstance}
	writes = nil
	for i := range swarm.MaxKVBytes/swarm.MaxKVValue - 1 {
		writes = append(writes, put(large, name(i), long))
	}
	commitKV(t, s, st, writes...)
	wantQuota(t, s, st, put(large, "one more", long))
	wantNoValue(t, s, st.key(), large, "one more")
}

func kvFreed(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	for range 3 {
		commitKV(t, s, st, put(agentScope, "a", "1"), put(agentScope, "b", "2"))
		wantUsage(t, s, st.key(), agentScope, 2, 4)
		commitKV(t, s, st, swarm.KVWrite{Scope: agentScope, Name: "a", Delete: true}, swarm.KVWrite{Scope: agentScope, Name: "b", Delete: true})
		wantUsage(t, s, st.key(), agentScope, 0, 0)
	}
}

func cas(n int64, expect, value []byte) *swarm.KVCas {
	return &swarm.KVCas{Scope: agentScope, Name: "a", Expect: expect, Value: value, Yes: call(n, "yes"), No: call(n, "no")}
}

func kvCas(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	for i, c := range []struct {
		expect, value []byte
		ok            bool
		after         []byte
	}{
		{[]byte("x"), []byte("1"), false, nil},
		{[]byte{}, []byte("1"), false, nil},
		{nil, []byte("1"), true, []byte("1")},
		{nil, []byte("2"), false, []byte("1")},
		{[]byte("1"), []byte{}, true, []byte{}},
		{nil, []byte("2"), false, []byte{}},
		{[]byte{}, []byte("3"), true, []byte("3")},
		{[]byte("3"), nil, true, nil},
		{nil, nil, true, nil},
	} {
		turn := int64(i + 1)
		got := mustJournal(t, s, st.key(), turn, swarm.JournalWrite{Header: header("calc"), Entries: calls(1, 2), Cas: cas(3, c.expect, c.value)})
		if got != c.ok {
			t.Errorf("cas %d of %q by %q = %t", i, c.expect, c.value, got)
		}
		answer := map[bool]string{true: "yes", false: "no"}[c.ok]
		same(t, "entries", mustRecord(t, s, st.key(), turn).Entries, append(calls(1, 2), call(3, answer)))
		if c.after == nil {
			wantNoValue(t, s, st.key(), agentScope, "a")
			wantUsage(t, s, st.key(), agentScope, 0, 0)
		} else {
			wantValue(t, s, st.key(), agentScope, "a", string(c.after))
			wantUsage(t, s, st.key(), agentScope, 1, int64(1+len(c.after)))
		}
	}
}

func kvCasRace(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	var expect []byte
	for round := range rounds() {
		var wins atomic.Int64
		value := []byte(fmt.Sprint(round))
		runConcurrently(t, 8, 8, func(i int) error {
			turn := int64(8*round + i + 1)
			ok, err := s.Journal(t.Context(), st.key(), turn, swarm.JournalWrite{Header: header("calc"), Cas: cas(1, expect, value)})
			if ok {
				wins.Add(1)
			}
			return err
		})
		if wins.Load() != 1 {
			t.Fatalf("%d of 8 cas won", wins.Load())
		}
		expect = value
	}
}

func kvCasQuota(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	var writes []swarm.KVWrite
	for i := range swarm.MaxKVKeys {
		writes = append(writes, put(agentScope, name(i), "v"))
	}
	commitKV(t, s, st, writes...)
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("calc")})
	_, err := s.Journal(t.Context(), st.key(), 1, swarm.JournalWrite{Cas: cas(1, nil, []byte("1"))})
	wantError(t, "cas beyond a quota", err, swarm.ErrQuota)
	same(t, "entries", mustRecord(t, s, st.key(), 1).Entries, []swarm.Entry(nil))
	wantNoValue(t, s, st.key(), agentScope, "a")
}

func kvBadScope(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	step := st.mutation()
	step.KV = []swarm.KVWrite{put(swarm.KVScope{Kind: "all"}, "a", "1")}
	if err := s.Commit(t.Context(), step); err == nil || errors.Is(err, swarm.ErrQuota) {
		t.Errorf("Commit to an unknown scope = %v", err)
	}
}
