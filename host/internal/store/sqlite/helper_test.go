package sqlite

import (
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

var testTime = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

var testInstance = swarm.InstanceKey{Tenant: swarm.DefaultTenant, Swarm: "hive", Instance: "user:alice"}

func openTest(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
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

// testStep is a step with one event.
func testStep(task string, seq int64) swarm.Mutation {
	return swarm.Mutation{
		Task: swarm.Task{
			Key:   swarm.TaskKey{InstanceKey: testInstance, Task: task},
			State: swarm.StateRunning, Created: testTime, Updated: testTime, Cursor: seq,
		},
		Events: []swarm.Event{{Seq: seq, Name: "e", Time: testTime}},
	}
}

func testPost(task string, row int64) swarm.Submission {
	return swarm.Submission{Instance: testInstance, Door: "rest", Key: task, Task: task, Row: row, Expires: testTime.Add(time.Hour)}
}

// openRaw opens a store's file a second time, as only a test should.
func openRaw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	return openRawFile(t, filepath.Join(dir, fileName))
}

func openRawFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// wantOpenError asserts that a directory cannot be opened, and that the text says
// why.
func wantOpenError(t *testing.T, dir string, words ...string) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err == nil {
		s.Close()
		t.Fatalf("Open(%s) succeeded, want an error with %q", dir, words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Open() = %v, want it to say %q", err, w)
		}
	}
}

// noise returns a text of n bytes that packing does not make smaller.
func noise(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)[:n]
}
