package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

// codecs counts bodies by the key they are sealed with, 0 for those that are
// not.
func codecs(t *testing.T, dir string) map[keyring.ID]int {
	t.Helper()
	db, n := openRaw(t, dir), map[keyring.ID]int{}
	for _, from := range []string{
		"body FROM tasks", "body FROM queue", "body FROM events", "body FROM history", "state FROM agents", "header FROM turns",
		"input FROM turns", "finish FROM turns", "body FROM journal", "value FROM kv", "digest FROM submissions", "note FROM submissions WHERE note IS NOT NULL",
		"body FROM blobs", "body FROM namers", "value FROM gateway_state",
	} {
		rows, err := db.QueryContext(t.Context(), "SELECT "+from)
		list, err := collect(rows, err, func(rows *sql.Rows) (b []byte, err error) {
			err = rows.Scan(&b)
			return b, err
		})
		mustDo(t, err)
		for _, body := range list {
			n[sealedWith(body)]++
		}
	}
	return n
}

// A store that sealed nothing before seals what it has, whether or not that is
// cut short.
func TestSealingBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	for i := range 300 {
		plant(t, s, "acme", fmt.Sprint("t", i), planted)
	}
	before := export(t, s, "acme")
	mustDo(t, s.Close())
	for range 3 {
		// It closes while it seals, or soon after.
		mustDo(t, openSealed(t, dir, &keyring.Options{}).Close())
	}
	s = openSealed(t, dir, &keyring.Options{})
	s.chores.stopped.Wait()
	if n := codecs(t, dir)[0]; n != 0 {
		t.Errorf("%d bodies are not sealed", n)
	}
	if export(t, s, "acme") != before {
		t.Error("the export is another after sealing")
	}
	wantCounted(t, s)
}

func TestRotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := testTime
	s := openSealed(t, dir, &keyring.Options{Now: func() time.Time { return now }})
	key := plant(t, s, "acme", "t1", planted)
	plant(t, s, "other", "t1", planted)
	before, old := export(t, s, "acme"), codecs(t, dir)
	backup := filepath.Join(t.TempDir(), "backup")
	mustDo(t, s.Backup(t.Context(), backup))

	mustDo(t, s.Rotate(t.Context(), "acme"))
	after := codecs(t, dir)
	if len(old) != 2 || len(after) != 2 || after[0] != 0 {
		t.Fatalf("bodies by key were %v and are %v", old, after)
	}
	changed := 0
	for id := range after {
		if old[id] == 0 {
			changed++
		}
	}
	if changed != 1 || export(t, s, "acme") != before {
		t.Errorf("%d keys are new, the export is the same: %t", changed, export(t, s, "acme") == before)
	}
	wantCounted(t, s)

	// The backup names the old key, which stays until it is dropped.
	retired := s.codec.ring.Retired(now.Add(time.Hour))
	wantDropped(t, s, now, 0)
	if len(retired) != 1 || s.codec.ring.State(retired[0]) != keyring.Retired {
		t.Fatalf("retired keys are %v", retired)
	}
	now = now.Add(2 * time.Hour)
	wantDropped(t, s, now, 1)
	if s.codec.ring.State(retired[0]) != keyring.Destroyed {
		t.Error("the retired key was not dropped")
	}
	mustDo(t, readEverything(t.Context(), s, key))
}

// A host that stops between the new key and the end of the resealing leaves it
// to the next.
func TestRotateGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	for i := range 300 {
		plant(t, s, "acme", fmt.Sprint("t", i), planted)
	}
	before := export(t, s, "acme")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Rotate(ctx, "acme") }()
	for len(codecs(t, dir)) < 2 {
		select {
		case err := <-done:
			t.Logf("rotation was over before it could be cut short: %v", err)
			done <- err
		default:
			continue
		}
		break
	}
	cancel()
	<-done
	mustDo(t, s.Close())
	s = openSealed(t, dir, &keyring.Options{})
	s.chores.stopped.Wait()
	if n := codecs(t, dir); len(n) != 1 || n[0] != 0 {
		t.Errorf("bodies by key are %v, want one key", n)
	}
	if export(t, s, "acme") != before {
		t.Error("the export is another after the rotation")
	}
}

// Writers go on while a tenant's key changes under them.
func TestRotateUnderLoad(t *testing.T) {
	t.Parallel()
	s := openSealed(t, t.TempDir(), &keyring.Options{})
	done := make(chan error, 1)
	go func() {
		for range 10 {
			if err := s.Rotate(t.Context(), testInstance.Tenant); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	seq := int64(0)
	for rotating := true; rotating; {
		seq++
		mustDo(t, s.Commit(t.Context(), testStep("t1", seq)))
		select {
		case err := <-done:
			mustDo(t, err)
			rotating = false
		default:
		}
	}
	events, err := s.Events(t.Context(), testStep("t1", 1).Task.Key, 0, int(seq)+1)
	if int64(len(events)) != seq || err != nil {
		t.Errorf("%d of %d events can be read, %v", len(events), seq, err)
	}
	keys, err := s.namedKeys(t.Context())
	if len(keys) != 1 || err != nil {
		t.Errorf("the database names %d keys, %v, want the newest", len(keys), err)
	}
	wantCounted(t, s)
}

func TestRotateNeedsKeyring(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	if err := s.Rotate(t.Context(), "acme"); !errors.Is(err, errUnsealed) {
		t.Errorf("Rotate() = %v, want errUnsealed", err)
	}
	wantDropped(t, s, testTime, 0)
}

func wantDropped(t *testing.T, s *Store, before time.Time, want int) {
	t.Helper()
	if n, err := s.DropRetired(t.Context(), before); n != want || err != nil {
		t.Errorf("DropRetired() = %d, %v, want %d", n, err, want)
	}
}

// A value without a name is sealed anew as the others are.
func TestRotateValueWithoutName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	key := plant(t, s, "acme", "t1", planted)
	mustDo(t, s.Commit(t.Context(), swarm.Mutation{
		Task: swarm.Task{Key: key, State: swarm.StateRunning, Created: testTime, Updated: testTime},
		KV:   []swarm.KVWrite{{Scope: swarm.KVScope{Kind: swarm.KVInstance}, Name: "", Value: []byte(planted)}},
	}))
	mustDo(t, s.Rotate(t.Context(), "acme"))
	if n := codecs(t, dir); len(n) != 1 || n[0] != 0 {
		t.Errorf("bodies by key are %v, want all under one", n)
	}
}

// Sealing begins with every tenant that keeps anything.
func TestSealingFindsTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	mustDo(t, s.AddDefinition(t.Context(), testDefinition("", "file")))
	mustDo(t, s.AddDefinition(t.Context(), testDefinition("acme", "one")))
	mustDo(t, s.Close())
	s = openSealed(t, dir, &keyring.Options{})
	s.chores.stopped.Wait()
	rows, err := openRaw(t, dir).QueryContext(t.Context(), "SELECT body FROM definitions WHERE tenant = ?", []byte("acme"))
	list, err := collect(rows, err, scanBody)
	mustDo(t, err)
	if len(list) != 1 || sealedWith(list[0]) == 0 {
		t.Errorf("%d definitions of the tenant, sealed with key %d", len(list), sealedWith(list[0]))
	}
	if _, err := s.Definition(t.Context(), "", "hive", "file"); err != nil {
		t.Error(err)
	}
}
