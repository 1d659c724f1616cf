package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// someTrace is a trace with a state.
var someTrace = swarm.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=1")

// start is when every story in this package begins.
var start = time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC)

var alice = swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: "user:alice"}

// taskBuilder makes the steps of one task, numbering what it makes as the runtime
// does.
type taskBuilder struct {
	task swarm.Task
}

func newTask(instance swarm.InstanceKey, id string) *taskBuilder {
	return &taskBuilder{swarm.Task{
		Key:        swarm.TaskKey{InstanceKey: instance, Task: id},
		Owner:      "user:alice@hive",
		Entrypoint: "supervisor",
		State:      swarm.StateRunning,
		Created:    start,
		Updated:    start,
		Nonce:      []byte("0123456789abcdef"),
		History:    map[string]int64{},
	}}
}

func (s *taskBuilder) key() swarm.TaskKey { return s.task.Key }

// mutation returns a step that carries the task as it is now; the caller adds to
// it. A second passes with each.
func (s *taskBuilder) mutation() swarm.Mutation {
	s.task.Updated = s.task.Updated.Add(time.Second)
	t := s.task
	t.History = make(map[string]int64, len(s.task.History))
	for agent, n := range s.task.History {
		t.History[agent] = n
	}
	return swarm.Mutation{Task: t}
}

func (s *taskBuilder) row(agent, body string) swarm.Row {
	s.task.Rows++
	return swarm.Row{
		N: s.task.Rows, Agent: agent, Tier: 3, Message: message(s.task.Rows, agent, body),
		Origin: swarm.Origin{Door: "rest", Realm: "static", Principal: "alice"},
	}
}

func (s *taskBuilder) event(name string) swarm.Event {
	s.task.Cursor++
	return swarm.Event{
		Seq: s.task.Cursor, Name: name, Time: s.task.Updated, Description: name + " <&>",
		Extra: json.RawMessage(`{"n":` + fmt.Sprint(s.task.Cursor) + `}`),
	}
}

func (s *taskBuilder) note(agent, text string) swarm.AgentEntry {
	s.task.History[agent]++
	return swarm.AgentEntry{Agent: agent, Entry: abi.HistoryEntry{
		Seq: s.task.History[agent], Turn: s.task.Rows, Time: abi.FormatTime(s.task.Updated),
		Kind: abi.KindNote, Note: text,
	}}
}

// post is a step with one row and its event, and the submission that goes with
// it.
func (s *taskBuilder) post(door, key, body string) (swarm.Mutation, swarm.Submission) {
	row, event := s.row("supervisor", body), s.event("new_message")
	step := s.mutation()
	step.Insert, step.Events = []swarm.Row{row}, []swarm.Event{event}
	return step, swarm.Submission{
		Instance: s.task.Key.InstanceKey, Door: door, Key: key, Digest: []byte("digest of " + body),
		Task: s.task.Key.Task, Row: row.N, Cursor: event.Seq, Expires: step.Task.Updated.Add(24 * time.Hour),
	}
}

func message(n int64, to, body string) mail.Message {
	id := mail.NewUUID([16]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 1})
	return mail.Message{
		ID: id, Timestamp: mail.FormatTime(start), Type: mail.Request,
		Payload: mail.Payload{
			TaskID: "t", ID: id, Sender: mail.Address{Type: mail.User, Name: "alice"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: to}}, Subject: "s", Body: body,
		},
	}
}

// The must functions end the test when the store refuses.

func mustAccept(t *testing.T, s swarm.TaskLog, step swarm.Mutation, post swarm.Submission) {
	t.Helper()
	got, err := s.Accept(t.Context(), step, post)
	if err != nil {
		t.Fatalf("Accept(%s, %s) = %v", post.Door, post.Key, err)
	}
	same(t, "accepted submission", got, post)
}

func mustCommit(t *testing.T, s swarm.TaskLog, step swarm.Mutation) {
	t.Helper()
	if err := s.Commit(t.Context(), step); err != nil {
		t.Fatalf("Commit() = %v", err)
	}
}

func mustLoad(t *testing.T, s swarm.TaskLog, key swarm.TaskKey) swarm.Snapshot {
	t.Helper()
	snap, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatalf("Load(%q) = %v", key.Task, err)
	}
	queue, err := s.LoadQueue(t.Context(), key)
	if err != nil {
		t.Fatalf("LoadQueue(%q) = %v", key.Task, err)
	}
	same(t, "task and rows alone", queue.Task, snap.Task)
	same(t, "task and rows alone", queue.Rows, snap.Rows)
	return snap
}

func mustEvents(t *testing.T, s swarm.TaskLog, key swarm.TaskKey) []swarm.Event {
	t.Helper()
	events, err := s.Events(t.Context(), key, 0, everything)
	if err != nil {
		t.Fatalf("Events(%q) = %v", key.Task, err)
	}
	return events
}

func mustHistory(t *testing.T, s swarm.TaskLog, key swarm.TaskKey, agent string) []abi.HistoryEntry {
	t.Helper()
	entries, err := s.History(t.Context(), key, agent, 0, everything)
	if err != nil {
		t.Fatalf("History(%q, %s) = %v", key.Task, agent, err)
	}
	return entries
}

func mustSubmission(t *testing.T, s swarm.TaskLog, key swarm.InstanceKey, door, id string) swarm.Submission {
	t.Helper()
	post, err := s.Submission(t.Context(), key, door, id)
	if err != nil {
		t.Fatalf("Submission(%s, %s) = %v", door, id, err)
	}
	return post
}

// everything is a limit above what any test here writes.
const everything = 1 << 20

// wholeRaw compares raw JSON at once. By itself cmp goes byte by byte, which
// takes seconds for a large body.
var wholeRaw = cmp.FilterValues(
	func(a, b json.RawMessage) bool { return len(a) > 0 || len(b) > 0 },
	cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))

// same compares what was read with what was written. Empty and absent lists
// are the same to the port, and it does not keep what a message has in memory only.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(swarm.Trace{}), cmpopts.IgnoreUnexported(swarm.OutboxMessage{}), wholeRaw); diff != "" {
		t.Errorf("%s mismatch (-want +got):\n%s", what, diff)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// numbers returns the numbers of rows, which come in order.
func numbers(rows []swarm.Row) []int64 {
	n := make([]int64, 0, len(rows))
	for _, r := range rows {
		n = append(n, r.N)
	}
	return n
}

// stashed returns the numbers of those rows that are flagged.
func stashed(rows []swarm.Row) []int64 {
	return numbers(slices.DeleteFunc(slices.Clone(rows), func(r swarm.Row) bool { return !r.Stash }))
}

func seqs(events []swarm.Event) []int64 {
	n := make([]int64, 0, len(events))
	for _, e := range events {
		n = append(n, e.Seq)
	}
	return n
}

func entrySeqs(entries []abi.HistoryEntry) []int64 {
	n := make([]int64, 0, len(entries))
	for _, e := range entries {
		n = append(n, e.Seq)
	}
	return n
}

// upTo returns from, from+1, … to.
func upTo(from, to int64) []int64 {
	var n []int64
	for i := from; i <= to; i++ {
		n = append(n, i)
	}
	return n
}
