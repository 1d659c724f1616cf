package storetest

import (
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var submissionCases = cases{
	"an unknown key is not found":         submissionUnknown,
	"an answer is recorded once and all":  submissionAnswer,
	"an answer is for its own task":       submissionTakenAnew,
	"purge forgets the done":              submissionPurge,
	"purge of many":                       submissionPurgeMany,
	"a held one is kept after its answer": submissionHeld,
	"several are accepted at once":        submissionSeveral,
	"a gateway's are listed by age":       submissionList,
}

func submissionUnknown(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", "hello")
	mustAccept(t, s, step, post)
	for _, key := range []string{"", "k", "k2", "K1"} {
		_, err := s.Submission(t.Context(), alice, "rest", key)
		wantError(t, "Submission("+key+")", err, swarm.ErrNotFound)
	}
}

func submissionAnswer(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	var posts []swarm.Submission
	for _, key := range []string{"k1", "k2", "k3"} {
		step, post := st.post("rest", key, key)
		mustAccept(t, s, step, post)
		posts = append(posts, post)
	}
	step := st.mutation()
	step.Answers = []swarm.SubmissionAnswer{
		{Door: "rest", Key: "k1", Cursor: 7}, {Door: "rest", Key: "k3", Cursor: 8},
		// A key that was purged is no reason to lose the step.
		{Door: "rest", Key: "k4", Cursor: 9},
	}
	mustCommit(t, s, step)
	posts[0].Answer, posts[2].Answer = 7, 8
	for _, want := range posts {
		same(t, "submission", mustSubmission(t, s, alice, "rest", want.Key), want)
	}
}

// An expired key may be taken by a post to another task before the first task
// answers. Its answer must not go to the wrong one.
func submissionTakenAnew(t *testing.T, s Store) {
	slow, quick := newTask(alice, "slow"), newTask(alice, "quick")
	step, first := slow.post("rest", "k1", "hello")
	mustAccept(t, s, step, first)
	step, second := quick.post("rest", "k1", "hello")
	step.Task.Updated, second.Expires = first.Expires, first.Expires.Add(time.Hour)
	mustAccept(t, s, step, second)

	answer := slow.mutation()
	answer.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: "k1", Cursor: 5}}
	mustCommit(t, s, answer)
	same(t, "submission", mustSubmission(t, s, alice, "rest", "k1"), second)
}

func submissionPurge(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	expires := map[string]time.Time{
		"answered, expired":     start.Add(time.Hour),
		"answered, expires now": start.Add(2 * time.Hour),
		"answered, valid":       start.Add(2*time.Hour + 1),
		"waiting, expired":      start.Add(time.Hour),
	}
	answer := st.mutation()
	for key, at := range expires {
		step, post := st.post("rest", key, key)
		post.Expires = at
		mustAccept(t, s, step, post)
		if key != "waiting, expired" {
			answer.Answers = append(answer.Answers, swarm.SubmissionAnswer{Door: "rest", Key: key, Cursor: 1})
		}
	}
	mustCommit(t, s, answer)

	n, err := s.Purge(t.Context(), start.Add(2*time.Hour))
	if n != 2 || err != nil {
		t.Errorf("Purge() = %d, %v, want 2", n, err)
	}
	for _, key := range []string{"answered, expired", "answered, expires now"} {
		_, err := s.Submission(t.Context(), alice, "rest", key)
		wantError(t, "Submission("+key+")", err, swarm.ErrNotFound)
	}
	for _, key := range []string{"answered, valid", "waiting, expired"} {
		mustSubmission(t, s, alice, "rest", key)
	}
}

func submissionPurgeMany(t *testing.T, s Store) {
	const posts = 2000
	st := newTask(alice, "t1")
	runConcurrently(t, 16, posts, func(i int) error {
		own := newTask(alice, st.key().Task+name(i))
		step, post := own.post("rest", name(i), "hello")
		post.Expires = start
		step.Answers = []swarm.SubmissionAnswer{{Door: "rest", Key: name(i), Cursor: 1}}
		_, err := s.Accept(t.Context(), step, post)
		return err
	})
	n, err := s.Purge(t.Context(), start)
	if n != posts || err != nil {
		t.Errorf("Purge() = %d, %v, want %d", n, err, posts)
	}
}

// gatewayPost is a post of a task through a gateway, accepted at a time.
func gatewayPost(st *taskBuilder, key string, at time.Time) (swarm.Mutation, swarm.Submission) {
	step, post := st.post("gateway:toy", key, key)
	post.Keep, post.Accepted, post.Agent, post.Note = time.Minute, at, "a", []byte("note of "+key)
	return step, post
}

func submissionHeld(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, post := gatewayPost(st, "k1", start)
	mustAccept(t, s, step, post)
	same(t, "submission", mustSubmission(t, s, alice, post.Door, "k1"), post)
	if posts := mustLoad(t, s, st.key()).Posts; len(posts) != 1 || !posts[0].Held {
		t.Errorf("posts that wait: %+v", posts)
	}
	answer := st.mutation()
	answer.Task.Updated = start.Add(48 * time.Hour)
	answer.Answers = []swarm.SubmissionAnswer{{Door: post.Door, Key: "k1", Cursor: 1}}
	mustCommit(t, s, answer)
	post.Answer, post.Expires = 1, answer.Task.Updated.Add(time.Minute)
	same(t, "answered", mustSubmission(t, s, alice, post.Door, "k1"), post)
}

func submissionSeveral(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	step, first := gatewayPost(st, "k1", start)
	_, second := gatewayPost(st, "k2", start)
	_, third := gatewayPost(st, "k3", start)
	step.Submissions = []swarm.Submission{second, third}
	mustAccept(t, s, step, first)
	for _, post := range []swarm.Submission{first, second, third} {
		same(t, "submission", mustSubmission(t, s, alice, post.Door, post.Key), post)
	}
	// One key that is taken refuses all.
	step, fourth := gatewayPost(st, "k4", start)
	step.Submissions = []swarm.Submission{third}
	got, err := s.Accept(t.Context(), step, fourth)
	wantError(t, "Accept with a taken key", err, swarm.ErrDuplicate)
	same(t, "the earlier one", got, third)
	_, err = s.Submission(t.Context(), alice, fourth.Door, "k4")
	wantError(t, "Submission(k4)", err, swarm.ErrNotFound)
	// One that has expired refuses none.
	step.Task.Updated = third.Expires
	third.Expires, fourth.Expires = third.Expires.Add(time.Hour), third.Expires.Add(time.Hour)
	step.Submissions = []swarm.Submission{third}
	mustAccept(t, s, step, fourth)
	for _, post := range []swarm.Submission{third, fourth} {
		same(t, "submission", mustSubmission(t, s, alice, post.Door, post.Key), post)
	}
}

func submissionList(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	var want []swarm.Submission
	for i, key := range []string{"b", "a", "c", "d"} {
		step, post := gatewayPost(st, key, start.Add(time.Duration(i/3)*time.Second))
		mustAccept(t, s, step, post)
		want = append(want, post)
	}
	want = []swarm.Submission{want[3], want[2], want[0], want[1]} // d; then c, b, a of one moment
	posted(t, s, st, "rest", "other")
	bob := alice
	bob.Instance = "user:bob"
	other := newTask(bob, "t1")
	step, post := gatewayPost(other, "e", start)
	mustAccept(t, s, step, post)

	var got []swarm.Submission
	for before := (swarm.Submission{}); ; before = got[len(got)-1] {
		page, err := s.Submissions(t.Context(), alice, "gateway:toy", before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, page...); len(page) < 3 {
			break
		}
	}
	same(t, "listed", got, want)
}
