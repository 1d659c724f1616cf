package sqlite

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"skep/host/internal/store/pgtest"
	"skep/host/internal/swarm"
)

// exported returns what a store has of the tests' tenant.
func exported(t *testing.T, s *Store) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Export(t.Context(), testInstance.Tenant, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// copiedSteps writes tasks with all that has numbers.
func copiedSteps(t *testing.T, s *Store, first, tasks int) {
	t.Helper()
	for i := first; i < first+tasks; i++ {
		task := fmt.Sprint("t", i)
		step := testStep(task, 1)
		step.States = []swarm.AgentState{{Agent: "supervisor", State: []byte(`{"n":1}`)}}
		step.KV = []swarm.KVWrite{{Scope: swarm.KVScope{Kind: swarm.KVTask}, Name: "", Value: []byte("v")}}
		step.Blobs = []swarm.Blob{{ID: swarm.BlobID{byte(i)}, Data: []byte(task)}}
		if _, err := s.Accept(t.Context(), step, testPost(task, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerCopy: a store is the same on a server, goes on there, and is the same in a file
// again.
func TestServerCopy(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), Server{DSN: pgtest.Schema(t)}
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	copiedSteps(t, s, 0, 100)
	want, secret := exported(t, s), s.writer.secret
	if err := CopyToServer(t.Context(), dir, server); err == nil {
		t.Error("a store in use was copied")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := CopyToServer(t.Context(), dir, server); err != nil {
		t.Fatal(err)
	}
	if err := CopyToServer(t.Context(), dir, server); err == nil {
		t.Error("a store was copied over another")
	}
	moved := openTestServer(t, server.DSN)
	if got := exported(t, moved); got != want || !bytes.Equal(moved.writer.secret, secret) {
		t.Errorf("the server has\n%s\nwant\n%s", got, want)
	}
	copiedSteps(t, moved, 100, 10)
	want = exported(t, moved)
	backup, back := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	if err := moved.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), backup, back, nil); err != nil {
		t.Fatal(err)
	}
	again := openTest(t, back)
	if got := exported(t, again); got != want || !bytes.Equal(again.writer.secret, secret) {
		t.Errorf("the file has\n%s\nwant\n%s", got, want)
	}
	copiedSteps(t, again, 110, 10)
}
