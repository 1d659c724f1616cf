package storetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var tenantCases = cases{
	"an export has everything":            exportWhole,
	"an export has nothing of others":     exportIsolation,
	"a writer's error ends an export":     exportFails,
	"erase leaves nothing":                eraseWhole,
	"erase leaves others as they are":     eraseIsolation,
	"an erased tenant can begin anew":     eraseReborn,
	"writes of the erased are refused":    eraseFence,
	"a footprint follows what is kept":    footprintFollows,
	"tenants are listed in pages":         tenantPages,
	"a day has what entries spend":        spentInADay,
	"what is made is counted by the day":  madeByDay,
	"a backup keeps the store in use":     backupInUse,
	"a backup does not take a name twice": backupTaken,
}

// acceptTask writes one step with all parts into an instance's task.
func acceptTask(t *testing.T, s Store, k swarm.InstanceKey, id string) (*taskBuilder, swarm.Mutation, swarm.Submission) {
	t.Helper()
	st := newTask(k, id)
	step, post := st.post("rest", id, "hello "+id)
	step.History = []swarm.AgentEntry{st.note("supervisor", "note of "+id)}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: raw(`{"n":1}`)}}
	mustAccept(t, s, step, post)
	return st, step, post
}

// fillTask gives an instance a task with everything in it, all of it marked.
func fillTask(t *testing.T, s Store, k swarm.InstanceKey, id, mark string) *taskBuilder {
	t.Helper()
	st := newTask(k, id)
	step, post := st.post("rest", id, mark+" row")
	step.Events[0].Description = mark + " event"
	step.History = []swarm.AgentEntry{st.note("supervisor", mark+" note")}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: raw(`"` + mark + ` state"`)}}
	step.Usage = []swarm.UsageCount{{UsageKey: swarm.UsageKey{Agent: mark + " agent"}, UsageSum: swarm.UsageSum{Turns: 1}}}
	mustAccept(t, s, step, post)
	h := header("supervisor")
	h.Input = []byte(mark + " input " + strings.Repeat("to be compressed ", 100))
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: h, Entries: []swarm.Entry{call(1, mark+" answer")}})
	e := end("ok")
	e.Output = []byte(mark + " output")
	commitRecord(t, s, st, swarm.Record{N: 1, Entries: []swarm.Entry{call(2, mark+" late answer")}, End: e})
	commitOutbox(t, s, st, nil, outboxMessage(1, "depot", mark+" letter"), dead(outboxMessage(2, "depot", mark+" dead letter")))
	commitKV(t, s, st, put(swarm.KVScope{Kind: swarm.KVTask, Agent: "a"}, "k", mark+" task value"),
		put(swarm.KVScope{Kind: swarm.KVAgent, Agent: "a"}, "k", mark+" agent value"),
		put(swarm.KVScope{Kind: swarm.KVInstance}, "k", mark+" instance value"))
	commitBlobs(t, s, st, mark+" blob", "of all")
	putState(t, s, stateKey(k.Tenant, k.Swarm+"/"+k.Instance+"/"+id), mark+" record")
	return st
}

// marks are what fillTask leaves in an export.
func marks(mark string) (list []string) {
	for _, part := range []string{"row", "event", "note", "state", "input", "answer", "late answer", "letter", "dead letter", "task value", "agent value", "instance value", "blob", "record", "agent"} {
		list = append(list, mark+" "+part)
	}
	return list
}

func export(t *testing.T, s Store, tenant string) string {
	t.Helper()
	var b strings.Builder
	if err := s.Export(t.Context(), tenant, &b); err != nil {
		t.Fatalf("Export(%q) = %v", tenant, err)
	}
	return b.String()
}

// bodies returns the lines of an export that tell of something, and wants each
// to be JSON.
func bodies(t *testing.T, text string) (lines []string) {
	t.Helper()
	all := bufio.NewScanner(strings.NewReader(text))
	all.Buffer(nil, 16<<20)
	for all.Scan() {
		var l struct{ Kind string }
		if err := json.Unmarshal(all.Bytes(), &l); err != nil || l.Kind == "" {
			t.Fatalf("line %q of an export: %v", all.Text(), err)
		}
		if l.Kind != "tenant" && l.Kind != "end" {
			lines = append(lines, all.Text())
		}
	}
	if !strings.HasSuffix(text, "{\"kind\":\"end\"}\n") {
		t.Errorf("export does not say that it is whole: %.200q", text)
	}
	return lines
}

func exportWhole(t *testing.T, s Store) {
	acme := swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:bob"}
	fillTask(t, s, acme, "t1", "MARK")
	second := acme
	second.Instance = "user:eve"
	fillTask(t, s, second, "t2", "OTHER")
	st := newTask(acme, "long")
	for range 3 {
		step := st.mutation()
		for range 400 {
			step.Events = append(step.Events, st.event("e"))
			step.History = append(step.History, st.note("a", "x"))
		}
		mustCommit(t, s, step)
	}
	text := export(t, s, "acme")
	for _, want := range append(marks("MARK"), marks("OTHER")...) {
		if !strings.Contains(text, want) {
			t.Errorf("export lacks %q", want)
		}
	}
	kinds := map[string]int{}
	for _, l := range bodies(t, text) {
		var line struct{ Kind string }
		_ = json.Unmarshal([]byte(l), &line)
		kinds[line.Kind]++
	}
	same(t, "lines", kinds, map[string]int{
		"task": 3, "row": 2, "event": 1202, "history": 1202, "state": 2, "submission": 2,
		"turn": 2, "turn_input": 2, "turn_entries": 2, "turn_end": 2, "value": 6, "letter": 4, "blob": 3, "blob_use": 4, "gateway_state": 2, "usage": 2,
	})
}

func exportIsolation(t *testing.T, s Store) {
	for i, k := range strangers {
		fillTask(t, s, k, "t", fmt.Sprintf("MARK%02d", i))
	}
	for i, k := range strangers {
		text := export(t, s, k.Tenant)
		for j, other := range strangers {
			if want := other.Tenant == k.Tenant; strings.Contains(text, fmt.Sprintf("MARK%02d", j)) != want {
				t.Errorf("export of the tenant of %d holds what is of %d: %t", i, j, !want)
			}
		}
	}
	same(t, "lines of nobody", len(bodies(t, export(t, s, "nobody"))), 0)
}

type brokenWriter struct{ left int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

var errBroken = errors.New("broken")

func exportFails(t *testing.T, s Store) {
	for i := range 20 {
		fillTask(t, s, alice, name(i), "MARK")
	}
	for _, n := range []int{0, 5000, 10000} {
		wantError(t, "Export to a writer that fails", s.Export(t.Context(), alice.Tenant, &brokenWriter{n}), errBroken)
	}
}

// spentInADay counts what entries spend to the tenant and the newest day, also of
// a turn that is cut off, and never below nothing.
func spentInADay(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	spends := func(n, tokens int64) swarm.Entry {
		e := call(n, "answer")
		e.Spend = swarm.Spend{Tokens: tokens, MicroUSD: 2 * tokens}
		return e
	}
	journal := func(h *swarm.TurnHeader, day int64, entries ...swarm.Entry) {
		mustJournal(t, s, st.task.Key, 1, swarm.JournalWrite{Header: h, Entries: entries, Day: day})
	}
	wants := func(what string, day, tokens int64) {
		f := footprint(t, s, alice.Tenant)
		same(t, what, []any{f.Day, f.Spend}, []any{day, swarm.Spend{Tokens: tokens, MicroUSD: 2 * tokens}})
	}
	day := footprint(t, s, alice.Tenant).Day + 20_000
	journal(header("a"), day, spends(1, 500))
	wants("an intent", day, 500)
	journal(nil, day, spends(2, -300), spends(3, 40))
	wants("its answer and another", day, 240)
	journal(nil, day+1, spends(4, 7))
	wants("the next day", day+1, 7)
	journal(nil, day, spends(5, 100))
	wants("a day that is over", day+1, 7)
	journal(nil, day+1, spends(6, -50))
	wants("what was reserved the day before", day+1, 0)
	ending := st.mutation()
	ending.Task.Updated = time.Unix((day+1)*24*3600+5, 0).UTC()
	ending.Record = &swarm.Record{N: 1, Entries: []swarm.Entry{spends(7, 11)}, End: end("ok")}
	mustCommit(t, s, ending)
	wants("the end of the turn", day+1, 11)
	rec, err := s.Record(t.Context(), st.task.Key, 1)
	if err != nil || rec.Entries[1].Spend != (swarm.Spend{Tokens: -300, MicroUSD: -600}) {
		t.Errorf("the record has %+v, %v", rec.Entries, err)
	}
}

func footprintFollows(t *testing.T, s Store) {
	same(t, "footprint of nobody", footprint(t, s, "acme"), swarm.Footprint{})
	acme := alice
	acme.Tenant = "acme"
	st := newTask(acme, "t1")
	step, post := st.post("rest", "k", strings.Repeat("x", 10_000))
	mustAccept(t, s, step, post)
	one := footprint(t, s, "acme")
	if one.Tasks != 1 || one.Bytes < 10_000 || one.Bytes > 12_000 {
		t.Errorf("footprint of one message is %+v", one)
	}
	again, repeat := st.post("rest", "k", "again")
	if _, err := s.Accept(t.Context(), again, repeat); !errors.Is(err, swarm.ErrDuplicate) {
		t.Fatal(err)
	}
	same(t, "footprint after a duplicate", footprint(t, s, "acme"), one)
	bad := newTask(acme, "t1")
	refused := bad.mutation()
	refused.Events = []swarm.Event{bad.event("taken")}
	if err := s.Commit(t.Context(), refused); err == nil {
		t.Fatal("a taken number was accepted")
	}
	same(t, "footprint after a refusal", footprint(t, s, "acme"), one)
	take := st.mutation()
	take.Consume = []int64{1}
	mustCommit(t, s, take)
	if f := footprint(t, s, "acme"); f.Bytes > one.Bytes-9_000 {
		t.Errorf("footprint after the message is gone is %+v, before it was %+v", f, one)
	}
	same(t, "footprint of another", footprint(t, s, alice.Tenant), swarm.Footprint{})
}

// tenantPages lists tenants by name, whatever it is that names them, with what they keep.
func tenantPages(t *testing.T, s Store) {
	key := func(tenant, instance string) swarm.InstanceKey {
		return swarm.InstanceKey{Tenant: tenant, Swarm: "hive", Instance: instance}
	}
	for _, of := range []swarm.InstanceKey{key("b", "user:a"), key("b", "user:b"), key("d", "user:a"), key("dd", "user:a")} {
		oneTask(t, s, of, "t1")
	}
	confine(t, s, testConfined("a")...)
	putState(t, s, stateKey("c", "callback"), "{}")
	mustErase(t, s, "dd")
	page := func(after string, limit int) (text string) {
		list, err := s.TenantFootprints(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			same(t, "footprint of "+one.Tenant, one.Footprint, footprint(t, s, one.Tenant))
			text += fmt.Sprintf("%s%d ", one.Tenant, one.Tasks)
		}
		return text
	}
	for _, test := range []struct {
		after string
		limit int
		want  string
	}{{"", 9, "a0 b2 c0 d1 "}, {"", 4, "a0 b2 c0 d1 "}, {"", 2, "a0 b2 "}, {"b", 2, "c0 d1 "}, {"bb", 1, "c0 "}, {"d", 2, ""}} {
		same(t, fmt.Sprintf("%d after %q", test.limit, test.after), page(test.after, test.limit), test.want)
	}
}

// What a tenant has made is counted by the day, and no day comes back.
func madeByDay(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	made := func(rows int, later time.Duration) (day, count int64) {
		st.task.Updated = st.task.Updated.Add(later)
		step := st.mutation()
		for range rows {
			step.Insert = append(step.Insert, st.row("supervisor", "x"))
		}
		mustCommit(t, s, step)
		f := footprint(t, s, alice.Tenant)
		return f.Day, f.Made
	}
	first, count := made(2, 0)
	same(t, "made", count, int64(2))
	_, count = made(3, time.Minute)
	same(t, "made later that day", count, int64(5))
	day, count := made(1, 24*time.Hour)
	same(t, "the next day", day, first+1)
	same(t, "made the next day", count, int64(1))
	day, count = made(4, -24*time.Hour)
	same(t, "a clock that was set back", day, first+1)
	same(t, "made before", count, int64(1))
	day, count = made(0, 48*time.Hour)
	same(t, "a day without rows", day, first+1)
	same(t, "made", count, int64(1))
}

func backupInUse(t *testing.T, s Store) {
	advance(t, s, "t1", 5)
	path := filepath.Join(t.TempDir(), "b")
	done := make(chan error, 1)
	go func() { done <- s.Backup(t.Context(), path) }()
	advance(t, s, "t1", 5+rounds())
	if err := <-done; err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	wantAdvanced(t, s, swarm.TaskKey{InstanceKey: alice, Task: "t1"}, int64(5+rounds()), int64(5+rounds()))
}

func backupTaken(t *testing.T, s Store) {
	path := filepath.Join(t.TempDir(), "b")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path); err == nil || !strings.Contains(err.Error(), "choose a new name") {
		t.Errorf("Backup to a name that is taken = %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(path, "below")); err == nil {
		t.Error("Backup below a file succeeded")
	}
}
