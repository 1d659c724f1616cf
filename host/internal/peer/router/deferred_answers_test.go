package router

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func outbox(task string) sequence {
	return sequence{OutboxKey: swarm.OutboxKey{Task: swarm.TaskKey{Task: task}, Peer: "depot"}}
}

// answer is a message that is given up a day after the tests begin.
func answer(id string) swarm.Delivery {
	return swarm.Delivery{Wrapper: mail.Interswarm{MessageID: id}, GiveUpAt: time.Unix(1e9, 0).Add(24 * time.Hour)}
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
		q.add(outbox(task), answer(fmt.Sprint("m", n)), 0, start)
	}
	if got := q.takeDue(start.Add(minDeferral/2 - 1)); got != nil {
		t.Errorf("%v do not rest at all", names(got))
	}
	now, gap := start, minDeferral
	for i, want := range []string{"a", "b", "c", "a", "b", "c", "a", "b", "c"} {
		now = now.Add(gap)
		got := q.takeDue(now)
		if fmt.Sprint(names(got)) != "["+want+"]" || len(q.messages[got[0]].ids) != 0 {
			t.Fatalf("%d: %v try, want %s", i, names(got), want)
		}
		gap = min(2*gap, maxDeferral)
		if early := q.takeDue(now.Add(gap/2 - 1)); early != nil {
			t.Errorf("%d: %v try before %s", i, names(early), gap/2)
		}
		q.add(got[0], answer("m1"), 0, now)
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
	q.add(outbox("a"), answer("m1"), 0, now)
	q.markPeerUp(now)
	if len(q.takeDue(now)) != 1 {
		t.Error("it is not tried when the peer answers")
	}
	q.add(outbox("a"), answer("m1"), 0, now)
	q.markPeerUp(now)
	if q.takeDue(now.Add(minDeferral-1)) != nil || len(q.takeDue(now.Add(minDeferral))) != 1 {
		t.Error("it is tried with every other letter")
	}
	now = now.Add(time.Hour)
	q.add(outbox("a"), answer("m1"), time.Minute, now)
	if q.takeDue(now.Add(time.Minute-1)) != nil || len(q.takeDue(now.Add(time.Minute))) != 1 {
		t.Error("it does not wait for as long as the peer wants")
	}
}

// Answers are given up in their time, however many wait for their turn.
func TestDeferredAnswersAreGivenUp(t *testing.T) {
	t.Parallel()
	var q deferredAnswers
	start := time.Unix(1e9, 0)
	const many = 10_000
	for n := range many {
		d := answer("m1")
		d.GiveUpAt = d.GiveUpAt.Add(time.Duration(n%2) * time.Hour)
		q.add(outbox(fmt.Sprint(n)), d, 0, start)
	}
	end := answer("").GiveUpAt
	q.due = end.Add(time.Hour) // nobody's turn until then
	if got := q.takeDue(end.Add(-1)); got != nil {
		t.Errorf("%d are given up early", len(got))
	}
	if got := q.takeDue(end); len(got) != many/2 {
		t.Errorf("%d are given up, want %d", len(got), many/2)
	}
	if got := q.takeDue(end); got != nil {
		t.Errorf("%d are given up twice", len(got))
	}
	if got := q.takeDue(end.Add(time.Hour)); len(got) != many/2 || len(q.messages) != 0 || len(q.order) != 0 {
		t.Errorf("%d are given up at the end, %d wait", len(got), len(q.order))
	}
}
