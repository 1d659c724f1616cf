package storetest

import (
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var pendingCases = cases{
	"posts wait in the order they came": pendingOrder,
	"an answer ends the waiting":        pendingAnswered,
	"a refused post does not wait":      pendingRefused,
	"a key is waited for by one task":   pendingTakenAnew,
	"expiry does not end the waiting":   pendingExpired,
	"many posts wait":                   pendingMany,
}

// pending is what a snapshot has of submissions that wait.
func pending(posts ...swarm.Submission) []swarm.PendingPost {
	var list []swarm.PendingPost
	for _, p := range posts {
		list = append(list, swarm.PendingPost{Row: p.Row, Door: p.Door, Key: p.Key})
	}
	return list
}

func wantPending(t *testing.T, s Store, st *taskBuilder, posts ...swarm.Submission) {
	t.Helper()
	same(t, "posts that wait in "+st.key().Task, mustLoad(t, s, st.key()).Posts, pending(posts...))
}

// posted accepts a post for each key.
func posted(t *testing.T, s Store, st *taskBuilder, door string, keys ...string) (list []swarm.Submission) {
	t.Helper()
	for _, key := range keys {
		step, post := st.post(door, key, "hello")
		mustAccept(t, s, step, post)
		list = append(list, post)
	}
	return list
}

func pendingOrder(t *testing.T, s Store) {
	st, neighbour := newTask(alice, "t1"), newTask(alice, "t")
	a := posted(t, s, st, "rest", "z", "b")
	b := posted(t, s, neighbour, "rest", "m")
	a = append(a, posted(t, s, st, "door", "a", "b")...)
	wantPending(t, s, st, a...)
	wantPending(t, s, neighbour, b...)

	// A row that is gone does not answer its post, and rows may be shared.
	step, post := st.post("rest", "again", "hello")
	step.Insert, post.Row = nil, 1
	step.Consume = []int64{1, 2}
	mustAccept(t, s, step, post)
	wantPending(t, s, st, append(a, post)...)
}

func pendingAnswered(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	posts := posted(t, s, st, "rest", "k1", "k2", "k3", "k4")
	posts = append(posts, posted(t, s, st, "door", "k2")...)
	step := st.mutation()
	step.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k4", Cursor: 7}, {Door: "rest", Key: "k2", Cursor: 7}}
	mustCommit(t, s, step)
	wantPending(t, s, st, posts[0], posts[2], posts[4])

	// A step may answer and accept.
	step, last := st.post("rest", "k5", "hello")
	step.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k1", Cursor: 9}}
	mustAccept(t, s, step, last)
	wantPending(t, s, st, posts[2], posts[4], last)
}

func pendingRefused(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	posts := posted(t, s, st, "rest", "k1")
	step, again := st.post("rest", "k1", "hello")
	_, err := s.Accept(t.Context(), step, again)
	wantError(t, "Accept of a taken key", err, swarm.ErrDuplicate)
	step, bad := st.post("rest", "k2", "hello")
	step.Events[0].Seq = 1
	if _, err := s.Accept(t.Context(), step, bad); err == nil {
		t.Error("Accept with a number that is taken succeeded")
	}
	wantPending(t, s, st, posts...)
}

func pendingTakenAnew(t *testing.T, s Store) {
	slow, quick := newTask(alice, "slow"), newTask(alice, "quick")
	first := posted(t, s, slow, "rest", "k1", "k2")
	step, second := quick.post("rest", "k1", "hello")
	step.Task.Updated, second.Expires = first[0].Expires, first[0].Expires.Add(time.Hour)
	mustAccept(t, s, step, second)
	wantPending(t, s, slow, first[1])
	wantPending(t, s, quick, second)
}

func pendingExpired(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	posts := posted(t, s, st, "rest", "k1", "k2")
	if n, err := s.Purge(t.Context(), start.AddDate(1, 0, 0)); n != 0 || err != nil {
		t.Errorf("Purge() = %d, %v, want 0", n, err)
	}
	wantPending(t, s, st, posts...)
}

func pendingMany(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	var keys []string
	for i := range 4 * rounds() {
		keys = append(keys, name(i))
	}
	posts := posted(t, s, st, "rest", keys...)
	wantPending(t, s, st, posts...)
	all := st.mutation()
	for _, p := range posts {
		all.Answers = append(all.Answers, swarm.SubmissionAnswer{Door: p.Door, Key: p.Key, Cursor: 1})
	}
	mustCommit(t, s, all)
	wantPending(t, s, st)
}

func reopenPosts(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	st := newTask(alice, "t1")
	posts := posted(t, s, st, "rest", "k1", "k2", "k3")
	step := st.mutation()
	step.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k2", Cursor: 4}}
	mustCommit(t, s, step)
	closeStore(t, s)
	wantPending(t, openAt(t, e, at), st, posts[0], posts[2])
}
