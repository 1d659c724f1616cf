package storetest

import (
	"fmt"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var outboxCases = cases{
	"letters wait with their task":         outboxWaits,
	"a letter leaves the outbox":           outboxSent,
	"a dead letter is listed":              outboxDead,
	"a dead letter comes back":             outboxRevived,
	"dead letters are listed page by page": outboxPages,
	"dead letters are their tenant's":      outboxTenants,
	"outboxes are listed by peer":          outboxOutboxes,
	"letters go with their task":           outboxPruned,
	"letters are counted":                  outboxFootprint,
}

func outboxMessage(n int64, peer, body string) swarm.OutboxMessage {
	m := message(n, "stock@"+peer, body)
	return swarm.OutboxMessage{N: n, ID: m.ID, Peer: peer, Message: m, Since: start, Trace: someTrace}
}

func dead(l swarm.OutboxMessage) swarm.OutboxMessage {
	l.Dead = &swarm.DeliveryFailure{At: start.Add(time.Minute), Reason: "no answer"}
	return l
}

func commitOutbox(t *testing.T, s Store, st *taskBuilder, sent []int64, letters ...swarm.OutboxMessage) {
	t.Helper()
	step := st.mutation()
	step.Outbox, step.Delivered = letters, sent
	mustCommit(t, s, step)
}

func mustDeadLetters(t *testing.T, s Store, tenant string, before int64, limit int) []swarm.DeadLetter {
	t.Helper()
	list, err := s.DeadLetters(t.Context(), tenant, before, limit)
	if err != nil {
		t.Fatalf("DeadLetters(%q) = %v", tenant, err)
	}
	return list
}

func mustOutboxes(t *testing.T, s Store) []swarm.OutboxKey {
	t.Helper()
	list, err := s.Outboxes(t.Context())
	if err != nil {
		t.Fatalf("Outboxes() = %v", err)
	}
	return list
}

// messagesOf returns dead letters without their places, which are the engine's.
func messagesOf(list []swarm.DeadLetter) (letters []swarm.OutboxMessage) {
	for _, d := range list {
		letters = append(letters, d.OutboxMessage)
	}
	return letters
}

func outboxWaits(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	a, b := outboxMessage(1, "depot", "first"), outboxMessage(2, "yard", "second")
	a.Notice = true
	commitOutbox(t, s, st, nil, a, b)
	commitOutbox(t, s, newTask(alice, "t2"), nil, outboxMessage(1, "depot", "of another task"))
	same(t, "letters", mustLoad(t, s, st.key()).Outbox, []swarm.OutboxMessage{a, b})
}

func outboxSent(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	b := outboxMessage(2, "depot", "second")
	commitOutbox(t, s, st, nil, outboxMessage(1, "depot", "first"), b)
	commitOutbox(t, s, st, []int64{1, 7})
	same(t, "letters", mustLoad(t, s, st.key()).Outbox, []swarm.OutboxMessage{b})
	commitOutbox(t, s, st, []int64{2}, outboxMessage(3, "depot", "third"))
	same(t, "letters", mustLoad(t, s, st.key()).Outbox, []swarm.OutboxMessage{outboxMessage(3, "depot", "third")})
	for _, n := range []int64{0, -1, 1 << 31} {
		step := st.mutation()
		step.Delivered = []int64{n}
		if err := s.Commit(t.Context(), step); err == nil {
			t.Errorf("Commit of the sent letter %d succeeded", n)
		}
	}
}

func outboxDead(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	gone := dead(outboxMessage(1, "depot", "first"))
	commitOutbox(t, s, st, nil, outboxMessage(1, "depot", "first"), outboxMessage(2, "depot", "second"))
	commitOutbox(t, s, st, nil, gone)
	same(t, "letters", mustLoad(t, s, st.key()).Outbox, []swarm.OutboxMessage{outboxMessage(2, "depot", "second")})
	list := mustDeadLetters(t, s, alice.Tenant, 0, everything)
	same(t, "dead letters", messagesOf(list), []swarm.OutboxMessage{gone})
	same(t, "task", list[0].Task, st.key())
	one, err := s.DeadLetter(t.Context(), alice.Tenant, gone.ID)
	same(t, "dead letter", []any{one, err}, []any{list[0], nil})
	_, err = s.DeadLetter(t.Context(), alice.Tenant, outboxMessage(2, "", "").ID)
	wantError(t, "DeadLetter of one that waits", err, swarm.ErrNotFound)
}

func outboxRevived(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	commitOutbox(t, s, st, nil, dead(outboxMessage(1, "depot", "first")))
	again := outboxMessage(1, "depot", "first")
	again.Since = start.Add(time.Hour)
	commitOutbox(t, s, st, nil, again)
	same(t, "letters", mustLoad(t, s, st.key()).Outbox, []swarm.OutboxMessage{again})
	same(t, "dead letters", len(mustDeadLetters(t, s, alice.Tenant, 0, everything)), 0)
}

func outboxPages(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	var all []swarm.OutboxMessage
	for n := int64(1); n <= 7; n++ {
		all = append([]swarm.OutboxMessage{dead(outboxMessage(n, "depot", fmt.Sprint(n)))}, all...)
		commitOutbox(t, s, st, nil, all[0])
	}
	var read []swarm.OutboxMessage
	for before := int64(0); ; {
		page := mustDeadLetters(t, s, alice.Tenant, before, 3)
		if len(page) == 0 {
			break
		}
		read, before = append(read, messagesOf(page)...), page[len(page)-1].Place
	}
	same(t, "dead letters", read, all)
}

func outboxTenants(t *testing.T, s Store) {
	for i, k := range strangers {
		commitOutbox(t, s, newTask(k, "t"), nil, dead(outboxMessage(int64(i+1), "depot", "b")))
	}
	for i, k := range strangers {
		own := dead(outboxMessage(int64(i+1), "depot", "b"))
		one, err := s.DeadLetter(t.Context(), k.Tenant, own.ID)
		same(t, "dead letter", []any{one.OutboxMessage, one.Task.InstanceKey, err}, []any{own, k, nil})
		for _, other := range strangers {
			if other.Tenant != k.Tenant {
				_, err := s.DeadLetter(t.Context(), other.Tenant, own.ID)
				wantError(t, "DeadLetter of another tenant", err, swarm.ErrNotFound)
			}
		}
		for _, d := range mustDeadLetters(t, s, k.Tenant, 0, everything) {
			same(t, "tenant", d.Task.Tenant, k.Tenant)
		}
	}
}

func outboxOutboxes(t *testing.T, s Store) {
	a, b := newTask(alice, "t1"), newTask(alice, "t2")
	commitOutbox(t, s, a, nil, outboxMessage(1, "depot", "x"), outboxMessage(2, "depot", "y"), outboxMessage(3, "yard", "z"), dead(outboxMessage(4, "quay", "z")))
	ended := b
	ended.task.State = swarm.StateCompleted
	commitOutbox(t, s, ended, nil, outboxMessage(1, "depot", "x"))
	commitOutbox(t, s, newTask(alice, "t3"), nil, dead(outboxMessage(1, "depot", "x")))
	got := map[swarm.OutboxKey]int{}
	for _, o := range mustOutboxes(t, s) {
		got[o]++
	}
	same(t, "outboxes", got, map[swarm.OutboxKey]int{{Task: a.key(), Peer: "depot"}: 1, {Task: a.key(), Peer: "yard"}: 1, {Task: b.key(), Peer: "depot"}: 1})
}

func outboxPruned(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	st.task.State = swarm.StateCompleted
	commitOutbox(t, s, st, nil, outboxMessage(1, "depot", "x"), dead(outboxMessage(2, "depot", "y")))
	if _, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: start.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	same(t, "left", []int{len(mustOutboxes(t, s)), len(mustDeadLetters(t, s, alice.Tenant, 0, everything))}, []int{0, 0})
	same(t, "footprint", footprint(t, s, alice.Tenant).Bytes, int64(0))
}

func outboxFootprint(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	mustCommit(t, s, st.mutation())
	before := footprint(t, s, alice.Tenant).Bytes
	commitOutbox(t, s, st, nil, outboxMessage(1, "depot", "x"), outboxMessage(2, "depot", "y"))
	commitOutbox(t, s, st, nil, dead(outboxMessage(2, "depot", "y")))
	if now := footprint(t, s, alice.Tenant).Bytes; now < before+200 {
		t.Errorf("two letters added %d bytes", now-before)
	}
	commitOutbox(t, s, st, []int64{1, 2})
	if now := footprint(t, s, alice.Tenant).Bytes; now > before+20 {
		t.Errorf("letters that are gone left %d bytes", now-before)
	}
}
