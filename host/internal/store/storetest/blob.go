package storetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"skep/host/internal/swarm"
)

var blobCases = cases{
	"blobs are put and read":               blobWrites,
	"no other tenant has them":             blobIsolation,
	"a task has those that it was given":   blobOfTask,
	"a blob goes with its last task":       blobPruned,
	"a step that is refused puts none":     blobRefused,
	"many tasks put the same at once":      blobShared,
	"a task with many blobs goes whole":    blobMany,
	"an erased tenant puts the same again": blobReborn,
}

func blobOf(data string) swarm.Blob {
	return swarm.Blob{ID: sha256.Sum256([]byte(data)), Data: []byte(data)}
}

func commitBlobs(t *testing.T, s Store, st *taskBuilder, data ...string) {
	t.Helper()
	step := st.mutation()
	for _, d := range data {
		step.Blobs = append(step.Blobs, blobOf(d))
	}
	mustCommit(t, s, step)
}

func wantBlob(t *testing.T, s Store, tenant, data string) {
	t.Helper()
	got, err := s.Blob(t.Context(), tenant, blobOf(data).ID)
	if err != nil || string(got) != data {
		t.Errorf("Blob(%q) of tenant %q = %.40q, %v", data, tenant, got, err)
	}
}

func wantNoBlob(t *testing.T, s Store, tenant, data string) {
	t.Helper()
	_, err := s.Blob(t.Context(), tenant, blobOf(data).ID)
	wantError(t, fmt.Sprintf("Blob(%q) of tenant %q", data, tenant), err, swarm.ErrNotFound)
}

func blobWrites(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	all := []string{"", "text", "\x00\xff\x01", string(bytes.Repeat([]byte("again "), 500_000)), `{"a": 1}`}
	wantNoBlob(t, s, alice.Tenant, "text")
	commitBlobs(t, s, st, all...)
	commitBlobs(t, s, oneTask(t, s, alice, "t2"), "more")
	for _, data := range append(all, "more") {
		wantBlob(t, s, alice.Tenant, data)
	}
	wantNoBlob(t, s, alice.Tenant, "TEXT")
	before := footprint(t, s, alice.Tenant)
	commitBlobs(t, s, st, "text", "text")
	if after := footprint(t, s, alice.Tenant); after.Bytes > before.Bytes+20 {
		t.Errorf("what is there is kept again: %+v, before %+v", after, before)
	}
}

func blobIsolation(t *testing.T, s Store) {
	for i, k := range strangers {
		commitBlobs(t, s, oneTask(t, s, k, "t"), "of all", fmt.Sprint("of ", k.Tenant), fmt.Sprint("of ", i))
	}
	for i, k := range strangers {
		for j, other := range strangers {
			wantBlob(t, s, k.Tenant, "of all")
			if same := other.Tenant == k.Tenant; same {
				wantBlob(t, s, k.Tenant, fmt.Sprint("of ", j))
			} else {
				wantNoBlob(t, s, k.Tenant, fmt.Sprint("of ", j))
				wantNoBlob(t, s, k.Tenant, fmt.Sprint("of ", other.Tenant))
			}
		}
		wantBlob(t, s, k.Tenant, fmt.Sprint("of ", i))
	}
	wantNoBlob(t, s, "nobody", "of all")
	mustErase(t, s, strangers[3].Tenant)
	wantNoBlob(t, s, strangers[3].Tenant, "of all")
	for _, k := range strangers {
		if k.Tenant != strangers[3].Tenant {
			wantBlob(t, s, k.Tenant, "of all")
		}
	}
}

// blobOfTask: a blob that only another task of the tenant uses is not found.
func blobOfTask(t *testing.T, s Store) {
	one, other := oneTask(t, s, alice, "t1"), oneTask(t, s, alice, "t2")
	commitBlobs(t, s, one, "of one", "of both")
	commitBlobs(t, s, other, "of both")
	for data, found := range map[string][2]bool{"of one": {true, false}, "of both": {true, true}, "of none": {false, false}} {
		for i, name := range []string{"t1", "t2"} {
			key := swarm.TaskKey{InstanceKey: alice, Task: name}
			got, err := s.TaskBlob(t.Context(), key, blobOf(data).ID)
			if found[i] && (err != nil || string(got) != data) {
				t.Errorf("%s of %s: %q, %v", data, name, got, err)
			}
			if !found[i] {
				wantError(t, data+" of "+name, err, swarm.ErrNotFound)
			}
		}
	}
}

func blobPruned(t *testing.T, s Store) {
	large := string(bytes.Repeat([]byte("x\xffy\x01z"), 50_000))
	var stories []*taskBuilder
	for i := range 3 {
		st, _, post := acceptTask(t, s, alice, fmt.Sprint("t", i))
		commitBlobs(t, s, st, large, fmt.Sprint("of ", i))
		st.task.State = swarm.StateCompleted
		step := st.mutation()
		step.Task.Updated = hours(i + 1)
		step.Answers = []swarm.SubmissionAnswer{{Door: post.Door, Key: post.Key, Cursor: 1}}
		mustCommit(t, s, step)
		stories = append(stories, st)
	}
	whole := footprint(t, s, alice.Tenant)
	for i := range stories {
		wantBlob(t, s, alice.Tenant, large)
		wantPruned(t, s, swarm.PruneRule{Tasks: hours(i + 2)}, swarm.Pruned{Tasks: 1})
		for j := range stories {
			if j <= i {
				wantNoBlob(t, s, alice.Tenant, fmt.Sprint("of ", j))
			} else {
				wantBlob(t, s, alice.Tenant, fmt.Sprint("of ", j))
			}
		}
	}
	wantNoBlob(t, s, alice.Tenant, large)
	if f := footprint(t, s, alice.Tenant); f.Bytes > whole.Bytes/2 && f.Bytes > 1000 {
		t.Errorf("footprint is %+v, was %+v", f, whole)
	}
	commitBlobs(t, s, oneTask(t, s, alice, "t9"), large)
	wantBlob(t, s, alice.Tenant, large)
}

func blobRefused(t *testing.T, s Store) {
	st := oneTask(t, s, alice, "t1")
	taken := st.mutation()
	taken.Events = []swarm.Event{st.event("first")}
	mustCommit(t, s, taken)
	before := footprint(t, s, alice.Tenant)
	again := newTask(alice, "t1")
	bad := again.mutation()
	bad.Events = []swarm.Event{again.event("second")}
	bad.Blobs = []swarm.Blob{blobOf("lost")}
	if err := s.Commit(t.Context(), bad); err == nil {
		t.Fatal("a taken number was accepted")
	}
	wantNoBlob(t, s, alice.Tenant, "lost")
	if after := footprint(t, s, alice.Tenant); after.Bytes > before.Bytes+100 {
		t.Errorf("footprint is %+v, was %+v", after, before)
	}
	commitBlobs(t, s, st, "lost")
	wantBlob(t, s, alice.Tenant, "lost")
}

func blobShared(t *testing.T, s Store) {
	runConcurrently(t, 8, 40, func(i int) error {
		step := newTask(alice, name(i)).mutation()
		step.Blobs = []swarm.Blob{blobOf("of all"), blobOf(fmt.Sprint("of ", i))}
		return s.Commit(t.Context(), step)
	})
	wantBlob(t, s, alice.Tenant, "of all")
	for i := range 40 {
		wantBlob(t, s, alice.Tenant, fmt.Sprint("of ", i))
	}
}

func blobMany(t *testing.T, s Store) {
	st, _, post := acceptTask(t, s, alice, "t1")
	large := string(bytes.Repeat([]byte{1, 2, 3, 0xff}, 50_000))
	for i := range 30 {
		var data []string
		for j := range 20 {
			data = append(data, fmt.Sprint(i, " ", j))
		}
		commitBlobs(t, s, st, append(data, fmt.Sprint(i, large))...)
	}
	st.task.State = swarm.StateCompleted
	step := st.mutation()
	step.Task.Updated = hours(1)
	step.Answers = []swarm.SubmissionAnswer{{Door: post.Door, Key: post.Key, Cursor: 1}}
	mustCommit(t, s, step)
	wantBlob(t, s, alice.Tenant, "29 19")
	wantPruned(t, s, swarm.PruneRule{Tasks: hours(2)}, swarm.Pruned{Tasks: 1})
	wantGone(t, s, st.key())
	wantNoBlob(t, s, alice.Tenant, "0 0")
	wantNoBlob(t, s, alice.Tenant, "29"+large)
	if f := footprint(t, s, alice.Tenant); f.Bytes > 1000 {
		t.Errorf("footprint is %+v", f)
	}
}

func blobReborn(t *testing.T, s Store) {
	for range 3 {
		commitBlobs(t, s, oneTask(t, s, alice, "t1"), "same")
		wantBlob(t, s, alice.Tenant, "same")
		mustErase(t, s, alice.Tenant)
		wantNoBlob(t, s, alice.Tenant, "same")
		same(t, "footprint of the erased", footprint(t, s, alice.Tenant), swarm.Footprint{})
	}
}
