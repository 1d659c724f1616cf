package storetest

import (
	"context"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var acceptCases = cases{
	"all parts are there":               acceptWhole,
	"a taken key changes nothing":       acceptDuplicate,
	"a repeat reports the answer":       acceptAnswered,
	"another body is told by digest":    acceptOtherDigest,
	"an expired key is free":            acceptExpired,
	"doors do not share keys":           acceptDoors,
	"a cancelled caller writes nothing": acceptCancelled,
	"a foreign submission is refused":   acceptForeign,
}

func acceptWhole(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, post)

	snap := mustLoad(t, s, st.key())
	same(t, "snapshot", snap, swarm.Snapshot{Task: step.Task, Rows: step.Insert, Posts: pending(post)})
	same(t, "events", mustEvents(t, s, st.key()), step.Events)
	same(t, "submission", mustSubmission(t, s, alice, "rest", "k1"), post)
}

func acceptDuplicate(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, first := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, first)

	for _, id := range []string{"t1", "t2"} {
		other := newTask(alice, id)
		other.task = st.task
		other.task.Key.Task = id
		again, post := other.post("rest", "k1", "hello")
		got, err := s.Accept(t.Context(), again, post)
		wantError(t, "Accept of a taken key", err, swarm.ErrDuplicate)
		same(t, "earlier submission", got, first)
	}

	same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{Task: step.Task, Rows: step.Insert, Posts: pending(first)})
	same(t, "events", mustEvents(t, s, st.key()), step.Events)
	_, err := s.Load(t.Context(), swarm.TaskKey{InstanceKey: alice, Task: "t2"})
	wantError(t, "Load of the task that was not made", err, swarm.ErrNotFound)
	_, err = s.LoadQueue(t.Context(), swarm.TaskKey{InstanceKey: alice, Task: "t2"})
	wantError(t, "LoadQueue of the task that was not made", err, swarm.ErrNotFound)
}

func acceptAnswered(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, post)
	answer := st.mutation()
	answer.Events = []swarm.Event{st.event("task_complete")}
	answer.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k1", Cursor: 2}}
	mustCommit(t, s, answer)

	step, again := st.post("rest", "k1", "hello")
	got, err := s.Accept(t.Context(), step, again)
	wantError(t, "Accept of a taken key", err, swarm.ErrDuplicate)
	post.Answer = 2
	same(t, "earlier submission", got, post)
}

func acceptOtherDigest(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, first := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, first)

	step, other := st.post("rest", "k1", "good bye")
	got, err := s.Accept(t.Context(), step, other)
	wantError(t, "Accept of a taken key", err, swarm.ErrDuplicate)
	same(t, "digest", got.Digest, first.Digest)
}

func acceptExpired(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, first := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, first)

	step, again := st.post("rest", "k1", "again")
	step.Task.Updated = first.Expires.Add(-time.Nanosecond)
	_, err := s.Accept(t.Context(), step, again)
	wantError(t, "Accept just before the key expires", err, swarm.ErrDuplicate)

	step.Task.Updated = first.Expires
	again.Expires = first.Expires.Add(time.Hour)
	mustAccept(t, s, step, again)
	same(t, "submission", mustSubmission(t, s, alice, "rest", "k1"), again)
	same(t, "rows", numbers(mustLoad(t, s, st.key()).Rows), []int64{1, 2})
}

func acceptDoors(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for _, door := range []string{"rest", "router", ""} {
		step, post := st.post(door, "k1", "by "+door)
		mustAccept(t, s, step, post)
		same(t, "submission", mustSubmission(t, s, alice, door, "k1"), post)
	}
}

func acceptCancelled(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	_, err := s.Accept(ctx, step, post)
	wantError(t, "Accept after its context ended", err, context.Canceled)
	wantError(t, "Commit after its context ended", s.Commit(ctx, step), context.Canceled)
	_, err = s.Load(t.Context(), st.key())
	wantError(t, "Load", err, swarm.ErrNotFound)
}

func acceptForeign(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	for _, change := range []func(*swarm.Submission){
		func(p *swarm.Submission) { p.Task = "t2" },
		func(p *swarm.Submission) { p.Instance.Tenant = "other" },
	} {
		step, post := st.post("rest", "k1", "hello")
		change(&post)
		if _, err := s.Accept(t.Context(), step, post); err == nil {
			t.Errorf("Accept of a submission for %+v with a step of %+v succeeded", post, st.key())
		}
	}
	_, err := s.Load(t.Context(), st.key())
	wantError(t, "Load", err, swarm.ErrNotFound)
}
