package storetest

import (
	"fmt"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var letterCases = map[string]func(*testing.T, Engine){
	"letters wait with their task":         letterWaits,
	"a letter leaves the outbox":           letterSent,
	"a dead letter is listed":              letterDead,
	"a dead letter comes back":             letterRevived,
	"dead letters are listed page by page": letterPages,
	"dead letters are their tenant's":      letterTenants,
	"outboxes are listed by peer":          letterOutboxes,
	"letters go with their task":           letterPruned,
	"letters are counted":                  letterFootprint,
}

func letter(n int64, peer, body string) swarm.Letter {
	m := message(n, "stock@"+peer, body)
	return swarm.Letter{N: n, ID: m.ID, Peer: peer, Message: m, Since: start, Trace: "trace"}
}

func dead(l swarm.Letter) swarm.Letter {
	l.Dead = &swarm.Death{At: start.Add(time.Minute), Reason: "no answer"}
	return l
}

func commitLetters(t *testing.T, s Engine, st *story, sent []int64, letters ...swarm.Letter) {
	t.Helper()
	step := st.step()
	step.Letters, step.Sent = letters, sent
	mustCommit(t, s, step)
}

func mustDeadLetters(t *testing.T, s Engine, tenant string, before int64, limit int) []swarm.DeadLetter {
	t.Helper()
	list, err := s.DeadLetters(t.Context(), tenant, before, limit)
	if err != nil {
		t.Fatalf("DeadLetters(%q) = %v", tenant, err)
	}
	return list
}

func mustOutboxes(t *testing.T, s Engine) []swarm.Outbox {
	t.Helper()
	list, err := s.Outboxes(t.Context())
	if err != nil {
		t.Fatalf("Outboxes() = %v", err)
	}
	return list
}

// lettersOf returns dead letters without their places, which are the engine's.
func lettersOf(list []swarm.DeadLetter) (letters []swarm.Letter) {
	for _, d := range list {
		letters = append(letters, d.Letter)
	}
	return letters
}

func letterWaits(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	a, b := letter(1, "depot", "first"), letter(2, "yard", "second")
	a.Notice = true
	commitLetters(t, s, st, nil, a, b)
	commitLetters(t, s, newStory(alice, "t2"), nil, letter(1, "depot", "of another task"))
	same(t, "letters", mustLoad(t, s, st.key()).Letters, []swarm.Letter{a, b})
}

func letterSent(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	b := letter(2, "depot", "second")
	commitLetters(t, s, st, nil, letter(1, "depot", "first"), b)
	commitLetters(t, s, st, []int64{1, 7})
	same(t, "letters", mustLoad(t, s, st.key()).Letters, []swarm.Letter{b})
	commitLetters(t, s, st, []int64{2}, letter(3, "depot", "third"))
	same(t, "letters", mustLoad(t, s, st.key()).Letters, []swarm.Letter{letter(3, "depot", "third")})
	for _, n := range []int64{0, -1, 1 << 31} {
		step := st.step()
		step.Sent = []int64{n}
		if err := s.Commit(t.Context(), step); err == nil {
			t.Errorf("Commit of the sent letter %d succeeded", n)
		}
	}
}

func letterDead(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	gone := dead(letter(1, "depot", "first"))
	commitLetters(t, s, st, nil, letter(1, "depot", "first"), letter(2, "depot", "second"))
	commitLetters(t, s, st, nil, gone)
	same(t, "letters", mustLoad(t, s, st.key()).Letters, []swarm.Letter{letter(2, "depot", "second")})
	list := mustDeadLetters(t, s, alice.Tenant, 0, everything)
	same(t, "dead letters", lettersOf(list), []swarm.Letter{gone})
	same(t, "task", list[0].Task, st.key())
	one, err := s.DeadLetter(t.Context(), alice.Tenant, gone.ID)
	same(t, "dead letter", []any{one, err}, []any{list[0], nil})
	_, err = s.DeadLetter(t.Context(), alice.Tenant, letter(2, "", "").ID)
	wantError(t, "DeadLetter of one that waits", err, swarm.ErrNotFound)
}

func letterRevived(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	commitLetters(t, s, st, nil, dead(letter(1, "depot", "first")))
	again := letter(1, "depot", "first")
	again.Since = start.Add(time.Hour)
	commitLetters(t, s, st, nil, again)
	same(t, "letters", mustLoad(t, s, st.key()).Letters, []swarm.Letter{again})
	same(t, "dead letters", len(mustDeadLetters(t, s, alice.Tenant, 0, everything)), 0)
}

func letterPages(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	var all []swarm.Letter
	for n := int64(1); n <= 7; n++ {
		all = append([]swarm.Letter{dead(letter(n, "depot", fmt.Sprint(n)))}, all...)
		commitLetters(t, s, st, nil, all[0])
	}
	var read []swarm.Letter
	for before := int64(0); ; {
		page := mustDeadLetters(t, s, alice.Tenant, before, 3)
		if len(page) == 0 {
			break
		}
		read, before = append(read, lettersOf(page)...), page[len(page)-1].Place
	}
	same(t, "dead letters", read, all)
}

func letterTenants(t *testing.T, s Engine) {
	for i, k := range strangers {
		commitLetters(t, s, newStory(k, "t"), nil, dead(letter(int64(i+1), "depot", "b")))
	}
	for i, k := range strangers {
		own := dead(letter(int64(i+1), "depot", "b"))
		one, err := s.DeadLetter(t.Context(), k.Tenant, own.ID)
		same(t, "dead letter", []any{one.Letter, one.Task.InstanceKey, err}, []any{own, k, nil})
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

func letterOutboxes(t *testing.T, s Engine) {
	a, b := newStory(alice, "t1"), newStory(alice, "t2")
	commitLetters(t, s, a, nil, letter(1, "depot", "x"), letter(2, "depot", "y"), letter(3, "yard", "z"), dead(letter(4, "quay", "z")))
	ended := b
	ended.task.State = swarm.StateCompleted
	commitLetters(t, s, ended, nil, letter(1, "depot", "x"))
	commitLetters(t, s, newStory(alice, "t3"), nil, dead(letter(1, "depot", "x")))
	got := map[swarm.Outbox]int{}
	for _, o := range mustOutboxes(t, s) {
		got[o]++
	}
	same(t, "outboxes", got, map[swarm.Outbox]int{{Task: a.key(), Peer: "depot"}: 1, {Task: a.key(), Peer: "yard"}: 1, {Task: b.key(), Peer: "depot"}: 1})
}

func letterPruned(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	st.task.State = swarm.StateCompleted
	commitLetters(t, s, st, nil, letter(1, "depot", "x"), dead(letter(2, "depot", "y")))
	if _, err := s.Prune(t.Context(), swarm.PruneRule{Tasks: start.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	same(t, "left", []int{len(mustOutboxes(t, s)), len(mustDeadLetters(t, s, alice.Tenant, 0, everything))}, []int{0, 0})
	same(t, "footprint", footprint(t, s, alice.Tenant).Bytes, int64(0))
}

func letterFootprint(t *testing.T, s Engine) {
	st := newStory(alice, "t1")
	mustCommit(t, s, st.step())
	before := footprint(t, s, alice.Tenant).Bytes
	commitLetters(t, s, st, nil, letter(1, "depot", "x"), letter(2, "depot", "y"))
	commitLetters(t, s, st, nil, dead(letter(2, "depot", "y")))
	if now := footprint(t, s, alice.Tenant).Bytes; now < before+200 {
		t.Errorf("two letters added %d bytes", now-before)
	}
	commitLetters(t, s, st, []int64{1, 2})
	if now := footprint(t, s, alice.Tenant).Bytes; now > before+20 {
		t.Errorf("letters that are gone left %d bytes", now-before)
	}
}
