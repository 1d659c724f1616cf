package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/gateway/state"
	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

func openSealed(t *testing.T, dir string, keys *keyring.Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{Keyring: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// planted is what plant leaves wherever a body can be.
const planted = "PLANTED-SECRET"

// plant writes a task of a tenant with the text in every body it has.
func plant(t *testing.T, s *Store, tenant, task, text string) swarm.TaskKey {
	t.Helper()
	key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant, Swarm: "hive", Instance: "user:a"}, Task: task}
	st := swarm.Mutation{Task: swarm.Task{Key: key, Owner: text, State: swarm.StateRunning, Created: testTime, Updated: testTime, Cursor: 1}}
	id := mail.NewUUID([16]byte{1})
	st.Insert = []swarm.Row{{N: 1, Agent: "a", Message: mail.Message{
		ID: id, Timestamp: mail.FormatTime(testTime), Type: mail.Request, Payload: mail.Payload{
			TaskID: "t", ID: id, Sender: mail.Address{Type: mail.User, Name: "u"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "a"}}, Subject: "s", Body: text,
		},
	}}}
	st.Events = []swarm.Event{{Seq: 1, Name: "e", Description: text, Time: testTime}}
	st.History = []swarm.AgentEntry{{Agent: "a", Entry: abi.HistoryEntry{Seq: 1, Kind: abi.KindNote, Note: text}}}
	st.States = []swarm.AgentState{{Agent: "a", State: []byte(`"` + text + `"`)}}
	post := swarm.Submission{
		Instance: key.InstanceKey, Door: "rest", Key: task, Digest: []byte(text), Task: task, Row: 1, Expires: testTime.Add(time.Hour),
		Keep: time.Hour, Accepted: testTime, Agent: "a", Note: []byte(text),
	}
	_, err := s.Accept(t.Context(), st, post)
	mustDo(t, err)
	scope := swarm.KVScope{Kind: swarm.KVInstance}
	entry := func(n int64) swarm.Entry { return swarm.Entry{N: n, Kind: swarm.EntryCall, Answer: []byte(text)} }
	_, err = s.Journal(t.Context(), key, 1, swarm.JournalWrite{
		Header: &swarm.TurnHeader{Agent: "a", Start: testTime, Input: []byte(text), Module: text}, Entries: []swarm.Entry{entry(1)},
		Cas: &swarm.KVCas{Scope: scope, Name: "cas", Value: []byte(text), Yes: entry(2), No: entry(2)},
	})
	mustDo(t, err)
	step := swarm.Mutation{Task: st.Task, KV: []swarm.KVWrite{{Scope: scope, Name: "put", Value: []byte(text)}}}
	step.Blobs = []swarm.Blob{{ID: sha256.Sum256([]byte(text)), Data: []byte(text)}}
	step.Record = &swarm.Record{N: 1, Entries: []swarm.Entry{entry(3)}, End: &swarm.TurnEnd{Exit: "ok", Output: []byte(text), At: testTime}}
	mustDo(t, s.Commit(t.Context(), step))
	_, err = s.GatewayState().Put(t.Context(), state.Record{Key: testState(tenant, task), Value: []byte(text)})
	mustDo(t, err)
	return key
}

func testState(tenant, name string) state.Key {
	return state.Key{Tenant: tenant, Gateway: "toy", Realm: "acme", Kind: "push", Name: name}
}

// holders returns the names of the files of a directory that hold a text.
func holders(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	mustDo(t, err)
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		mustDo(t, err)
		if bytes.Contains(b, []byte(text)) {
			names = append(names, e.Name())
		}
	}
	return names
}

// What is written is found in the files of a store that does not seal, the log
// and a backup among them, and nowhere in a sealing store's.
func TestSealedFilesHoldNoText(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": nil, "sealed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir, keys)
			plant(t, s, swarm.DefaultTenant, "t1", planted)
			log := holders(t, dir, planted)
			mustDo(t, s.Backup(t.Context(), filepath.Join(dir, "backup")))
			mustDo(t, s.Close())
			found := append(log, holders(t, dir, planted)...)
			slices.Sort(found)
			var want []string
			if keys == nil {
				want = []string{"backup", fileName, fileName + "-wal"}
			}
			if !slices.Equal(slices.Compact(found), want) {
				t.Errorf("the text is in %q, want %q", found, want)
			}
		})
	}
}

// After an erasure neither texts nor names are in any file, and a backup from
// before it is restored without what was erased.
func TestErasedFilesHoldNothing(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": nil, "sealed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir, keys)
			plant(t, s, "acme", "erased-task", planted)
			kept := plant(t, s, "other", "kept-task", "kept text")
			backup := filepath.Join(t.TempDir(), "backup")
			mustDo(t, s.Backup(t.Context(), backup))
			mustDo(t, s.Erase(t.Context(), "acme"))
			for _, text := range []string{planted, "erased-task"} {
				if found := holders(t, dir, text); found != nil {
					t.Errorf("%q is still in %q", text, found)
				}
			}
			if _, err := s.Load(t.Context(), kept); err != nil {
				t.Errorf("Load of another tenant = %v", err)
			}
			if keys != nil {
				mustDo(t, s.Close())
				wantErasedInBackup(t, dir, backup, kept)
			}
		})
	}
}

// wantErasedInBackup restores a backup from before an erasure beside the
// keyring of today.
func wantErasedInBackup(t *testing.T, dir, backup string, kept swarm.TaskKey) {
	t.Helper()
	ring, err := os.ReadFile(filepath.Join(dir, keyringName))
	mustDo(t, err)
	again := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(again, keyringName), ring, 0o600))
	mustDo(t, Restore(t.Context(), backup, again, nil))
	raw := openRaw(t, again)
	var rows int
	mustDo(t, raw.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&rows))
	if rows != 2 {
		t.Errorf("the backup has %d events, want 2", rows)
	}
	var body []byte
	mustDo(t, raw.QueryRowContext(t.Context(), "SELECT body FROM tasks WHERE task = ?", []byte("erased-task")).Scan(&body))
	r, err := keyring.Open(filepath.Join(again, keyringName), keyring.Options{})
	mustDo(t, err)
	acme := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:a"}, Task: "erased-task"}
	sealed, _ := sealedIn(body)
	if _, err := r.Open(nil, sealed, placeOf(acme).bind(spot{inTasks, "", 0})); !errors.Is(err, keyring.ErrDestroyed) {
		t.Errorf("opening a body of the erased = %v, want ErrDestroyed", err)
	}
	look, err := OpenReader(t.Context(), again, Options{Keyring: &keyring.Options{}})
	mustDo(t, err)
	_, err = look.Load(t.Context(), acme)
	if mustDo(t, look.Close()); !errors.Is(err, swarm.ErrErasing) || !errors.Is(err, keyring.ErrDestroyed) {
		t.Errorf("Load of the erased = %v, want ErrErasing", err)
	}

	s := openSealed(t, again, &keyring.Options{})
	s.chores.stopped.Wait()
	if _, err := s.Load(t.Context(), acme); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("Load of what was erased = %v, want ErrNotFound", err)
	}
	if _, err := s.Load(t.Context(), kept); err != nil {
		t.Errorf("Load of another tenant = %v", err)
	}
	plant(t, s, "acme", "new-task", "new text")
}

// Rows of the file that take each other's place do not open.
func TestSealedRowsCannotMove(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]string{
		"task":    "UPDATE tasks SET body = (SELECT body FROM tasks t WHERE t.tid = 3 - tasks.tid)",
		"event":   "UPDATE events SET body = (SELECT body FROM events e WHERE e.id <> events.id)",
		"history": "UPDATE history SET body = (SELECT body FROM history h WHERE h.id <> history.id)",
		"state":   "UPDATE agents SET state = (SELECT state FROM agents a WHERE a.aid <> agents.aid)",
		"row":     "UPDATE queue SET body = (SELECT body FROM queue q WHERE q.id <> queue.id)",
		"turn":    "UPDATE turns SET header = input",
		"journal": "UPDATE journal SET body = (SELECT body FROM journal j WHERE j.id <> journal.id)",
		"value":   "UPDATE kv SET value = (SELECT value FROM kv v WHERE v.name = CAST('cas' AS BLOB)) WHERE name = CAST('put' AS BLOB)",
		"digest":  "UPDATE submissions SET digest = (SELECT digest FROM submissions s WHERE s.key <> submissions.key)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := openSealed(t, dir, &keyring.Options{})
			key := plant(t, s, "acme", "t1", "one")
			plant(t, s, "acme", "t2", "two")
			mustDo(t, readEverything(t.Context(), s, key))
			exec(t, openRaw(t, dir), swap)
			if err := readEverything(t.Context(), s, key); !errors.Is(err, keyring.ErrSealed) {
				t.Errorf("reading = %v, want ErrSealed", err)
			}
		})
	}
}

func readEverything(ctx context.Context, s *Store, key swarm.TaskKey) error {
	_, err := s.Load(ctx, key)
	_, err2 := s.Events(ctx, key, 0, 10)
	_, err3 := s.History(ctx, key, "a", 0, 10)
	_, err4 := s.Record(ctx, key, 1)
	_, err5 := s.KVGet(ctx, key, swarm.KVScope{Kind: swarm.KVInstance}, "put")
	_, err6 := s.Submission(ctx, key.InstanceKey, "rest", key.Task)
	return errors.Join(err, err2, err3, err4, err5, err6)
}

func TestOpenRefusesWithoutKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kek := &keyring.Options{KEK: bytes.Repeat([]byte{1}, 32)}
	s := openSealed(t, dir, kek)
	plant(t, s, "acme", "t1", planted)
	mustDo(t, s.Close())

	path := filepath.Join(dir, keyringName)
	ring, err := os.ReadFile(path)
	mustDo(t, err)
	wantOpenError(t, dir, "sealed", `"acme"`, "keyring")
	refusedWith(t, dir, &keyring.Options{}, "[store] keyring", "wrapped")
	refusedWith(t, dir, &keyring.Options{KEK: bytes.Repeat([]byte{2}, 32)}, "[store] keyring", "not the one")
	mustDo(t, os.Remove(path))
	refusedWith(t, dir, kek, path, "missing", `"acme"`, "lost", "copy of the keyring")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused open left a keyring: %v", err)
	}
	mustDo(t, os.WriteFile(path, otherRing(t, kek), 0o600))
	refusedWith(t, dir, kek, "does not hold the keys", `"acme"`)
	mustDo(t, os.WriteFile(path, ring, 0o600))
	s = openSealed(t, dir, kek)
	if got := export(t, s, "acme"); !strings.Contains(got, planted) {
		t.Errorf("export is %q", got)
	}
}

func otherRing(t *testing.T, opts *keyring.Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "k")
	r, err := keyring.Open(path, *opts)
	mustDo(t, err)
	mustDo(t, r.Rotate("acme"))
	b, err := os.ReadFile(path)
	mustDo(t, err)
	return b
}

func refusedWith(t *testing.T, dir string, keys *keyring.Options, words ...string) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{Keyring: keys})
	if err == nil {
		s.Close()
		t.Fatalf("Open succeeded, want an error with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Open() = %v, want it to say %q", err, w)
		}
	}
}

func export(t *testing.T, s *Store, tenant string) string {
	t.Helper()
	var b strings.Builder
	mustDo(t, s.Export(t.Context(), tenant, &b))
	return b.String()
}

// A key that cannot be written seals nothing.
func TestKeyBeforeRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	mustDo(t, os.Mkdir(filepath.Join(dir, keyringName+".part"), 0o700))
	mustDo(t, os.WriteFile(filepath.Join(dir, keyringName+".part", "f"), nil, 0o600))
	if err := s.Commit(t.Context(), testStep("t1", 1)); err == nil {
		t.Fatal("Commit without a place for its key succeeded")
	}
	if _, err := s.Load(t.Context(), testStep("t1", 1).Task.Key); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("Load() = %v, want ErrNotFound", err)
	}
	mustDo(t, os.RemoveAll(filepath.Join(dir, keyringName+".part")))
	mustDo(t, s.Commit(t.Context(), testStep("t1", 1)))
}
