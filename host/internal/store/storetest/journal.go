package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
)

var recordCases = cases{
	"every field is kept":              recordWhole,
	"a commit adds to what is there":   recordJoined,
	"a suspended turn goes on":         recordSuspended,
	"an ended turn takes no more":      recordEnded,
	"entries leave no gap":             recordGap,
	"a turn needs a header once":       recordHeader,
	"records come in pages":            recordPages,
	"a bad record refuses it all":      recordAllOrNothing,
	"records of other tasks stay away": recordIsolation,
}

func header(agent string) *swarm.TurnHeader {
	return &swarm.TurnHeader{
		Agent: agent, Start: start, Input: []byte(`{"v": 1, "text": "<&> \u00e9"}`), Module: "0f0f", Recipe: "1/2/amd64",
		Limits: json.RawMessage(`{"fuel":1}`), Attempt: 2,
	}
}

func call(n int64, answer string) swarm.Entry {
	return swarm.Entry{
		N: n, Call: fmt.Sprint(n), Kind: swarm.EntryCall, Op: abi.OpMail, Digest: []byte("digest"),
		Answer: []byte(answer), Time: start.Add(time.Duration(n)),
	}
}

func calls(from, to int64) (list []swarm.Entry) {
	for n := from; n <= to; n++ {
		list = append(list, call(n, fmt.Sprint("answer ", n)))
	}
	return list
}

func end(exit string) *swarm.TurnEnd {
	return &swarm.TurnEnd{Exit: exit, Output: []byte("{\"a\": 1}\xff"), Usage: swarm.Usage{Turns: 1, Fuel: 1 << 63}, At: start.Add(time.Minute)}
}

// oneTask commits a task without rows and returns its story.
func oneTask(t *testing.T, s Store, k swarm.InstanceKey, id string) *taskBuilder {
	t.Helper()
	st := newTask(k, id)
	mustCommit(t, s, st.mutation())
	return st
}

func mustJournal(t *testing.T, s Store, key swarm.TaskKey, turn int64, w swarm.JournalWrite) bool {
	t.Helper()
	ok, err := s.Journal(t.Context(), key, turn, w)
	if err != nil {
		t.Fatalf("Journal(turn %d) = %v", turn, err)
	}
	return ok
}

func mustRecord(t *testing.T, s Store, key swarm.TaskKey, turn int64) swarm.Record {
	t.Helper()
	r, err := s.Record(t.Context(), key, turn)
	if err != nil {
		t.Fatalf("Record(%d) = %v", turn, err)
	}
	return r
}

func commitRecord(t *testing.T, s Store, st *taskBuilder, r swarm.Record) {
	t.Helper()
	step := st.mutation()
	step.Record = &r
	mustCommit(t, s, step)
}

func recordWhole(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	want := swarm.Record{N: 7, Header: header("calc"), End: end("ok"), Entries: []swarm.Entry{
		call(1, `{"a": 1}`),
		{N: 2, Call: "2.1", Kind: swarm.EntryIntent, Op: abi.OpHTTPFetch, Digest: []byte{0}},
		{N: 3, Call: "2.1", Kind: swarm.EntryAnswer, Op: abi.OpHTTPFetch, Answer: []byte("\x00\xff"), Time: start},
		{N: 4, Call: "3", Kind: swarm.EntryCall, Op: abi.OpKVGet, Err: abi.Errorf(abi.CodeNotFound, abi.OpKVGet, "r", "no %s", "key")},
		{N: 5, Kind: swarm.EntryWait, Index: 3},
		{N: 6, Kind: swarm.EntryRead, Len: 1 << 40},
		{N: 7, Call: "4", Kind: swarm.EntryCancel},
	}}
	commitRecord(t, s, st, want)
	same(t, "record", mustRecord(t, s, st.key(), 7), want)
	_, err := s.Record(t.Context(), st.key(), 1)
	wantError(t, "Record of another turn", err, swarm.ErrNotFound)
	_, err = s.Record(t.Context(), st.key(), -1)
	wantError(t, "Record of no turn", err, swarm.ErrNotFound)
}

func recordJoined(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	key := st.key()
	mustJournal(t, s, key, 1, swarm.JournalWrite{Header: header("calc"), Entries: calls(1, 2)})
	same(t, "record", mustRecord(t, s, key, 1), swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 2)})
	mustJournal(t, s, key, 1, swarm.JournalWrite{Entries: calls(3, 3)})
	mustJournal(t, s, key, 2, swarm.JournalWrite{Header: header("stats")})
	mustJournal(t, s, key, 2, swarm.JournalWrite{Entries: calls(1, 4)})
	commitRecord(t, s, st, swarm.Record{N: 1, Entries: calls(4, 6), End: end("trap")})
	same(t, "record", mustRecord(t, s, key, 1), swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 6), End: end("trap")})
	same(t, "record", mustRecord(t, s, key, 2), swarm.Record{N: 2, Header: header("stats"), Entries: calls(1, 4)})
	commitRecord(t, s, st, swarm.Record{N: 2, End: end("ok")})
	same(t, "record", mustRecord(t, s, key, 2), swarm.Record{N: 2, Header: header("stats"), Entries: calls(1, 4), End: end("ok")})
}

func recordSuspended(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	commitRecord(t, s, st, swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 2)})
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Entries: calls(3, 3)})
	commitRecord(t, s, st, swarm.Record{N: 1, Entries: calls(4, 4)})
	same(t, "record", mustRecord(t, s, st.key(), 1), swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 4)})
	commitRecord(t, s, st, swarm.Record{N: 1, Entries: calls(5, 5), End: end("ok")})
	same(t, "record", mustRecord(t, s, st.key(), 1), swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 5), End: end("ok")})
}

// refusedJournal wants a write to be refused and the record to stay as it is.
func refusedJournal(t *testing.T, s Store, key swarm.TaskKey, turn int64, w swarm.JournalWrite) {
	t.Helper()
	before, err := s.Record(t.Context(), key, turn)
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Journal(t.Context(), key, turn, w); err == nil {
		t.Errorf("Journal(turn %d, %+v) succeeded", turn, w)
	}
	after, err := s.Record(t.Context(), key, turn)
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		t.Fatal(err)
	}
	same(t, "record after a refusal", after, before)
}

func recordEnded(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	commitRecord(t, s, st, swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 2), End: end("ok")})
	refusedJournal(t, s, st.key(), 1, swarm.JournalWrite{Entries: calls(3, 3)})
	step := st.mutation()
	step.Record = &swarm.Record{N: 1, End: end("ok")}
	if err := s.Commit(t.Context(), step); err == nil {
		t.Error("a turn ended twice")
	}
}

func recordGap(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	refusedJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("a"), Entries: calls(2, 3)})
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("a"), Entries: calls(1, 2)})
	for _, list := range [][]swarm.Entry{calls(4, 4), calls(2, 3), calls(0, 1), append(calls(3, 3), call(5, "")), append(calls(3, 3), call(3, ""))} {
		refusedJournal(t, s, st.key(), 1, swarm.JournalWrite{Entries: list})
	}
	step := st.mutation()
	step.Record = &swarm.Record{N: 1, Entries: calls(4, 4), End: end("ok")}
	if err := s.Commit(t.Context(), step); err == nil {
		t.Error("Commit with a gap in the journal succeeded")
	}
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Entries: calls(3, 3)})
}

func recordHeader(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	_, err := s.Journal(t.Context(), st.key(), 1, swarm.JournalWrite{Entries: calls(1, 1)})
	wantError(t, "Journal without a header", err, swarm.ErrNotFound)
	none := swarm.TaskKey{InstanceKey: alice, Task: "none"}
	_, err = s.Journal(t.Context(), none, 1, swarm.JournalWrite{Header: header("a")})
	wantError(t, "Journal of no task", err, swarm.ErrNotFound)
	_, err = s.Load(t.Context(), none)
	wantError(t, "Load", err, swarm.ErrNotFound)
	refusedJournal(t, s, st.key(), 1, swarm.JournalWrite{})
	refusedJournal(t, s, st.key(), 0, swarm.JournalWrite{Header: header("a")})
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("a")})
	refusedJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("b")})
}

func recordPages(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	for n := int64(1); n <= 10; n++ {
		r := swarm.Record{N: n, Header: header("a"), Entries: calls(1, 2), End: end("ok")}
		if n == 10 {
			r.End = nil
		}
		commitRecord(t, s, st, r)
	}
	for _, p := range pages {
		got, err := s.Records(t.Context(), st.key(), p.after, p.limit)
		if err != nil {
			t.Fatal(err)
		}
		var turns []int64
		for _, r := range got {
			turns = append(turns, r.N)
			want := swarm.Record{N: r.N, Header: header("a"), End: end("ok")}
			want.Header.Input = nil
			if r.N == 10 {
				want.End = nil
			}
			same(t, "listed record", r, want)
		}
		same(t, fmt.Sprintf("records after %d, at most %d", p.after, p.limit), turns, p.want)
	}
}

func recordAllOrNothing(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	before := mustLoad(t, s, st.key())
	bad := newTask(alice, "t1")
	step := bad.mutation()
	step.Insert, step.Events = []swarm.Row{bad.row("a", "x")}, []swarm.Event{bad.event("e")}
	step.Record = &swarm.Record{N: 1, Entries: calls(1, 1), End: end("ok")}
	wantError(t, "Commit that ends a turn without a header", s.Commit(t.Context(), step), swarm.ErrNotFound)
	same(t, "snapshot", mustLoad(t, s, st.key()), before)
	same(t, "events", seqs(mustEvents(t, s, st.key())), []int64(nil))
}

func recordIsolation(t *testing.T, s Store) {
	for i, k := range strangers {
		st := oneTask(t, s, k, "t")
		mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header(fmt.Sprint(i)), Entries: calls(1, int64(i+1))})
	}
	for i, k := range strangers {
		r := mustRecord(t, s, swarm.TaskKey{InstanceKey: k, Task: "t"}, 1)
		same(t, "record", []any{r.Header.Agent, len(r.Entries)}, []any{fmt.Sprint(i), i + 1})
	}
}
