package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// listedPosts is a task's record as it was when it listed its posts.
const listedPosts = "\x01" + `{"key":{"tenant":"default","swarm":"hive","instance":"user:alice","task":"t1"},
	"owner":"user:alice@hive","contributors":null,"entrypoint":"a","state":"running",
	"created":"2026-03-01T09:30:00Z","updated":"2026-03-01T09:30:00Z","steps":1,"rows":3,"cursor":3,"nonce":"AAAA",
	"posts":[{"row":1,"door":"rest","key":"z","consumed":true},{"row":2,"door":"rest","key":"b"},{"row":3,"door":"other","key":"a"}],
	"usage":{"turns":1,"fuel":0,"cpu":0,"host_calls":0}}`

// fileWithPosts makes a database of schema version 3: a task of which three posts
// wait and one is answered, one row is in the queue and one in the stash.
func fileWithPosts(t *testing.T, dir string) swarm.TaskKey {
	t.Helper()
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: "user:alice"}, Task: "t1"}
	db, c, err := openConn(t.Context(), filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	defer c.Close()
	if err := migrate(t.Context(), c, migrations[:3], testTime); err != nil {
		t.Fatal(err)
	}
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := c.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	run("INSERT INTO meta VALUES ('secret', ?), ('epoch', 7)", []byte("0123456789abcdef0123456789abcdef"))
	run("INSERT INTO instances VALUES (1, ?, ?, ?)", []byte(key.Tenant), []byte(key.Swarm), []byte(key.Instance))
	run("INSERT INTO tasks VALUES (1, 1, ?, 'running', ?, ?, NULL, NULL)", []byte(key.Task), stamp(testTime), []byte(listedPosts))
	run("INSERT INTO tenants VALUES (?, ?, 1, 0, 0)", []byte(key.Tenant), len(listedPosts))
	for i, post := range []swarm.Submission{{Door: "rest", Key: "z"}, {Door: "rest", Key: "b"}, {Door: "other", Key: "a"}, {Door: "rest", Key: "c", Answer: 3}} {
		run("INSERT INTO submissions VALUES (1, ?, ?, NULL, ?, ?, ?, ?, ?)",
			[]byte(post.Door), []byte(post.Key), []byte(key.Task), i+1, i+1, stamp(testTime.Add(time.Hour)), post.Answer)
	}
	for n, stash := range map[int64]bool{2: false, 3: true} {
		body, err := encode(swarm.Row{N: n, Agent: "a", Message: upgradeMessage(n)})
		if err != nil {
			t.Fatal(err)
		}
		run("INSERT INTO queue VALUES (?, ?, ?)", pack(1, n), stash, body)
		run("UPDATE tenants SET bytes = bytes + ?", len(body))
	}
	return key
}

func upgradeMessage(n int64) mail.Message {
	id := mail.NewUUID([16]byte{byte(n)})
	return mail.Message{
		ID: id, Timestamp: mail.FormatTime(testTime), Type: mail.Request,
		Payload: mail.Payload{
			TaskID: "t1", ID: id, Sender: mail.Address{Type: mail.User, Name: "alice"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "a"}}, Subject: "s", Body: "b",
		},
	}
}

// A file of the schema before finds its posts as before, and steps take them away.
func TestUpgradeFindsPosts(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": nil, "sealed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			key := fileWithPosts(t, dir)
			s := openSealed(t, dir, keys)
			s.chores.stopped.Wait() // it seals what was plain
			wantPosts(t, s, key, []swarm.PendingPost{{Row: 1, Door: "rest", Key: "z"}, {Row: 2, Door: "rest", Key: "b"}, {Row: 3, Door: "other", Key: "a"}})
			snap, err := s.Load(t.Context(), key)
			if err != nil || len(snap.Rows) != 2 || snap.Rows[0].Stash || !snap.Rows[1].Stash {
				t.Fatalf("rows are %+v, %v", snap.Rows, err)
			}
			err = s.Commit(t.Context(), swarm.Mutation{
				Task: snap.Task, Unstash: true,
				Answers: []swarm.SubmissionAnswer{{Door: "rest", Key: "z", Cursor: 4}, {Door: "other", Key: "a", Cursor: 4}},
			})
			if err != nil {
				t.Fatal(err)
			}
			wantPosts(t, s, key, []swarm.PendingPost{{Row: 2, Door: "rest", Key: "b"}})
			if snap, err = s.Load(t.Context(), key); err != nil || snap.Rows[1].Stash {
				t.Errorf("rows are %+v, %v", snap.Rows, err)
			}
			wantCounted(t, s)
		})
	}
}

func wantPosts(t *testing.T, s *Store, key swarm.TaskKey, want []swarm.PendingPost) {
	t.Helper()
	snap, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, snap.Posts); diff != "" {
		t.Errorf("posts that wait (-want +got):\n%s", diff)
	}
}
