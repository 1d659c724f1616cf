package storetest

import (
	"bytes"
	"testing"

	"skep/host/internal/swarm"
)

var reopenCases = map[string]func(*testing.T, Engine){
	"after close":              reopenClosed,
	"close writes what it has": reopenPending,
	"a closed store refuses":   reopenRefused,
	"tokens last":              reopenTokens,
	"records of gateways last": reopenState,
	"a quarantine lasts":       reopenQuarantine,
	"secrets differ":           reopenSecrets,
	"after kill":               crash,
	"a journal lasts":          reopenJournal,
	"posts still wait":         reopenPosts,
	"an erasure goes on":       eraseInterrupted,
}

func reopenClosed(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	var secret []byte
	st := newTask(alice, "t1")
	for turns := 1; turns <= 20; turns++ {
		s := e.Open(t, at)
		advance(t, s, "t1", turns)
		if turns > 1 {
			wantAdvanced(t, s, st.key(), int64(turns), int64(turns))
		}
		again, err := s.Secret(t.Context())
		if err != nil || turns > 1 && !bytes.Equal(again, secret) {
			t.Errorf("secret after reopening is another, %v", err)
		}
		secret = again
		closeStore(t, s)
	}
	s := openAt(t, e, at)
	wantAdvanced(t, s, st.key(), 20, 20)
	wantClaim(t, s, []swarm.TaskKey{st.key()})
	_, post := turn("t1", 1)
	step, _ := turn("t1", 1)
	_, err := s.Accept(t.Context(), step, post)
	wantError(t, "Accept of a key taken before", err, swarm.ErrDuplicate)
}

// Close may come while callers write. Each of them is told the truth.
func reopenPending(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	told := make([]error, 100)
	started, done := make(chan struct{}, len(told)), make(chan struct{})
	go func() {
		defer close(done)
		runConcurrently(t, len(told), len(told), func(i int) error {
			started <- struct{}{}
			told[i] = s.Commit(t.Context(), newTask(alice, name(i)).mutation())
			return nil
		})
	}()
	for range len(told) / 2 {
		<-started
	}
	closeStore(t, s)
	<-done

	s = openAt(t, e, at)
	for i, err := range told {
		_, missing := s.Load(t.Context(), swarm.TaskKey{InstanceKey: alice, Task: name(i)})
		if (err == nil) != (missing == nil) {
			t.Errorf("Commit() = %v, Load after reopening = %v", err, missing)
		}
	}
}

func reopenRefused(t *testing.T, e Engine) {
	s := e.Open(t, e.NewPlace(t))
	closeStore(t, s)
	closeStore(t, s)
	st := newTask(alice, "t1")
	if err := s.Commit(t.Context(), st.mutation()); err == nil {
		t.Error("Commit to a closed store succeeded")
	}
	if _, err := s.Load(t.Context(), st.key()); err == nil {
		t.Error("Load from a closed store succeeded")
	}
}

func reopenSecrets(t *testing.T, e Engine) {
	one, err := openAt(t, e, e.NewPlace(t)).Secret(t.Context())
	two, err2 := openAt(t, e, e.NewPlace(t)).Secret(t.Context())
	if err != nil || err2 != nil || bytes.Equal(one, two) {
		t.Errorf("two stores have the same secret, or none: %v, %v", err, err2)
	}
}

// reopenJournal journals a turn, ends it after reopening, and reads it after
// another.
func reopenJournal(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	st := oneTask(t, s, alice, "t1")
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Header: header("calc"), Entries: calls(1, 2)})
	mustJournal(t, s, st.key(), 2, swarm.JournalWrite{Header: header("calc"), Entries: calls(1, 1), Cas: cas(2, nil, []byte("1"))})
	closeStore(t, s)
	s = e.Open(t, at)
	mustJournal(t, s, st.key(), 3, swarm.JournalWrite{Header: header("calc"), Entries: calls(1, 1)})
	mustJournal(t, s, st.key(), 1, swarm.JournalWrite{Entries: calls(3, 3)})
	commitRecord(t, s, st, swarm.Record{N: 1, Entries: calls(4, 4), End: end("ok")})
	closeStore(t, s)
	s = openAt(t, e, at)
	same(t, "record", mustRecord(t, s, st.key(), 1), swarm.Record{N: 1, Header: header("calc"), Entries: calls(1, 4), End: end("ok")})
	same(t, "entries", mustRecord(t, s, st.key(), 2).Entries, append(calls(1, 1), call(2, "yes")))
	same(t, "entries", mustRecord(t, s, st.key(), 3).Entries, calls(1, 1))
	wantValue(t, s, st.key(), agentScope, "a", "1")
}
