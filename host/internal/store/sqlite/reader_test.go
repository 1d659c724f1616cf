package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// A reader sees what a host has written, while it runs and afterwards, and does
// not keep it from starting.
func TestReader(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	if _, err := OpenReader(ctx, dir, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, instance := range []string{"user:alice", "user:bob"} {
		key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "default", Swarm: "hive", Instance: instance}, Task: "t"}
		step := swarm.Mutation{
			Task: swarm.Task{Key: key, State: swarm.StateRunning, Created: time.Now()},
			Record: &swarm.Record{N: 1, Header: &swarm.TurnHeader{Agent: "a", Input: []byte("in")},
				Entries: []swarm.Entry{{N: 1, Call: "1", Kind: swarm.EntryCall, Answer: []byte("x")}}},
		}
		if err := s.Commit(ctx, step); err != nil {
			t.Fatal(err)
		}
	}
	readAll(t, dir, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	readAll(t, dir, nil)
	if s, err = Open(ctx, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, dir string, beside *Store) {
	t.Helper()
	ctx := context.Background()
	r, err := OpenReader(ctx, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	keys, err := r.Find(ctx, "t", 10)
	if err != nil || len(keys) != 2 || keys[1].Instance != "user:bob" {
		t.Fatalf("%v, %v", keys, err)
	}
	if none, err := r.Find(ctx, "T", 10); err != nil || len(none) > 0 {
		t.Errorf("%v, %v", none, err)
	}
	if snap, err := r.Load(ctx, keys[0]); err != nil || snap.Task.Key != keys[0] {
		t.Errorf("%+v, %v", snap.Task, err)
	}
	rec, err := r.Record(ctx, keys[0], 1)
	if err != nil || string(rec.Header.Input) != "in" || len(rec.Entries) != 1 {
		t.Errorf("%+v, %v", rec, err)
	}
	if list, err := r.Records(ctx, keys[0], 0, 9); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if beside == nil {
		return
	}
	if secret, err := beside.Secret(ctx); err != nil || string(secret) != string(r.Secret()) {
		t.Error("another secret")
	}
}

// What another version wrote is told apart from what is broken.
func TestReaderOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	oldFile(t, dir)
	if _, err := OpenReader(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "start the host once") {
		t.Error(err)
	}
}
