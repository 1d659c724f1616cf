package sqlite

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tornTasks take turns in TestTornLog.
const tornTasks = 5

// A power cut leaves a log that ends anywhere, or in noise. What can be read of
// it must be whole steps, from the first on without a gap.
func TestTornLog(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	const turns = 200
	for i := range int64(turns) {
		st := testStep(fmt.Sprint(i%tornTasks), i/tornTasks+1)
		st.Events[0].Description = noise(rand.IntN(6000))
		if err := s.Commit(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	db, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	cuts := 15
	if testing.Short() {
		cuts = 5
	}
	wantTurns(t, db, log, turns, turns)
	for range cuts {
		at := rand.IntN(len(log))
		wantTurns(t, db, log[:at], 0, turns)
		noisy := bytes.Clone(log)
		for i := at; i < len(log); i++ {
			noisy[i] = byte(rand.Uint32())
		}
		wantTurns(t, db, noisy, 0, turns)
	}
}

// wantTurns opens a store that a host left as these two files, and asserts that
// its tasks have together taken a number of turns.
func wantTurns(t *testing.T, db, log []byte, least, most int64) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, db)
	if err := os.WriteFile(filepath.Join(dir, fileName+"-wal"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s, err := Open(t.Context(), dir, Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatalf("open with %d bytes of log: %v", len(log), err)
	}
	defer s.Close()
	if want := fmt.Sprint("unclean=", len(log) > 0); !strings.Contains(out.String(), want) {
		t.Errorf("log is %q, want it to say %s", out.String(), want)
	}
	turns, total := wholeTurns(t, s)
	if total < least || total > most {
		t.Errorf("%d turns are left, want %d to %d", total, least, most)
	}
	for i := range int64(len(turns)) {
		// The tasks take turns in order, so any number of them is spread evenly.
		if want := (total + tornTasks - 1 - i) / tornTasks; turns[fmt.Sprint(i)] != want {
			t.Errorf("task %d has taken %d of %d turns, want %d", i, turns[fmt.Sprint(i)], total, want)
		}
	}
}

// wholeTurns returns how many turns each task has taken, and all together. A
// turn is whole when its event is there, and when no other is.
func wholeTurns(t *testing.T, s *Store) (turns map[string]int64, total int64) {
	t.Helper()
	keys, err := s.RunningTasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turns = make(map[string]int64)
	for _, key := range keys {
		snap, err := s.Load(t.Context(), key.TaskKey)
		if err != nil {
			t.Fatal(err)
		}
		at := snap.Task.Cursor
		events, err := s.Events(t.Context(), key.TaskKey, 0, int(at)+1)
		if n := int64(len(events)); n != at || n > 0 && events[n-1].Seq != n || err != nil {
			t.Errorf("task %s is at %d with %d events, %v", key.Task, at, n, err)
		}
		turns[key.Task] = at
		total += at
	}
	return turns, total
}
