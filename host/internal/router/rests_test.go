package router

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

func outbox(task string) swarm.Outbox {
	return swarm.Outbox{Task: swarm.TaskKey{Task: task}, Peer: "depot"}
}

func names(list []swarm.Outbox) (out []string) {
	for _, box := range list {
		out = append(out, box.Task.Task)
	}
	return out
}

// One task tries at a time, in turn, ever more seldom, until the peer answers.
func TestRests(t *testing.T) {
	t.Parallel()
	var q rests
	start := time.Unix(1e9, 0)
	for n, task := range []string{"a", "a", "b", "c"} {
		q.put(outbox(task), int64(n), 0, start)
	}
	if got := q.wake(start.Add(firstSlow/2 - 1)); got != nil {
		t.Errorf("%v do not rest at all", names(got))
	}
	now, gap := start, firstSlow
	for i, want := range []string{"a", "b", "c", "a", "b", "c", "a", "b", "c"} {
		now = now.Add(gap)
		got := q.wake(now)
		if fmt.Sprint(names(got)) != "["+want+"]" || len(q.of[got[0]]) != 0 {
			t.Fatalf("%d: %v try, want %s", i, names(got), want)
		}
		gap = min(2*gap, lastSlow)
		if early := q.wake(now.Add(gap/2 - 1)); early != nil {
			t.Errorf("%d: %v try before %s", i, names(early), gap/2)
		}
		q.put(got[0], 1, 0, now)
	}
	q.answered(now)
	if got := names(q.wake(now)); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v try when the peer answers", got)
	}
	q.answered(now)
	if !q.due.After(now) || len(q.of) != 0 || q.wake(now.Add(time.Hour)) != nil {
		t.Errorf("what no more rests is tried: %+v", q)
	}
}

// A letter that the peer never answers is not tried with each one that it takes,
// and one that it wants later not before.
func TestRestsKeepTheirPace(t *testing.T) {
	t.Parallel()
	var q rests
	now := time.Unix(1e9, 0)
	q.put(outbox("a"), 1, 0, now)
	q.answered(now)
	if len(q.wake(now)) != 1 {
		t.Error("it is not tried when the peer answers")
	}
	q.put(outbox("a"), 1, 0, now)
	q.answered(now)
	if q.wake(now.Add(firstSlow-1)) != nil || len(q.wake(now.Add(firstSlow))) != 1 {
		t.Error("it is tried with every other letter")
	}
	now = now.Add(time.Hour)
	q.put(outbox("a"), 1, time.Minute, now)
	if q.wake(now.Add(time.Minute-1)) != nil || len(q.wake(now.Add(time.Minute))) != 1 {
		t.Error("it does not wait for as long as the peer wants")
	}
}
