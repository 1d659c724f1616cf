package router

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

func outbox(task string) sequence {
	return sequence{OutboxKey: swarm.OutboxKey{Task: swarm.TaskKey{Task: task}, Peer: "depot"}}
}

func names(list []sequence) (out []string) {
	for _, n := range list {
		out = append(out, n.Task.Task)
	}
	return out
}

// One task tries at a time, in turn, ever more seldom, until the peer answers.
func TestDeferredAnswers(t *testing.T) {
	t.Parallel()
	var q deferredAnswers
	start := time.Unix(1e9, 0)
	for n, task := range []string{"a", "a", "b", "c"} {
		q.add(outbox(task), fmt.Sprint("m", n), 0, start)
	}
	if got := q.takeDue(start.Add(minDeferral/2 - 1)); got != nil {
		t.Errorf("%v do not rest at all", names(got))
	}
	now, gap := start, minDeferral
	for i, want := range []string{"a", "b", "c", "a", "b", "c", "a", "b", "c"} {
		now = now.Add(gap)
		got := q.takeDue(now)
		if fmt.Sprint(names(got)) != "["+want+"]" || len(q.messages[got[0]]) != 0 {
			t.Fatalf("%d: %v try, want %s", i, names(got), want)
		}
		gap = min(2*gap, maxDeferral)
		if early := q.takeDue(now.Add(gap/2 - 1)); early != nil {
			t.Errorf("%d: %v try before %s", i, names(early), gap/2)
		}
		q.add(got[0], "m1", 0, now)
	}
	q.markPeerUp(now)
	if got := names(q.takeDue(now)); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v try when the peer answers", got)
	}
	q.markPeerUp(now)
	if !q.due.After(now) || len(q.messages) != 0 || q.takeDue(now.Add(time.Hour)) != nil {
		t.Errorf("what no more rests is tried: %+v", q)
	}
}

// An answer that the peer never takes is not tried with each one that it takes,
// and one that it wants later not before its time.
func TestDeferredAnswersPace(t *testing.T) {
	t.Parallel()
	var q deferredAnswers
	now := time.Unix(1e9, 0)
	q.add(outbox("a"), "m1", 0, now)
	q.markPeerUp(now)
	if len(q.takeDue(now)) != 1 {
		t.Error("it is not tried when the peer answers")
	}
	q.add(outbox("a"), "m1", 0, now)
	q.markPeerUp(now)
	if q.takeDue(now.Add(minDeferral-1)) != nil || len(q.takeDue(now.Add(minDeferral))) != 1 {
		t.Error("it is tried with every other letter")
	}
	now = now.Add(time.Hour)
	q.add(outbox("a"), "m1", time.Minute, now)
	if q.takeDue(now.Add(time.Minute-1)) != nil || len(q.takeDue(now.Add(time.Minute))) != 1 {
		t.Error("it does not wait for as long as the peer wants")
	}
}
