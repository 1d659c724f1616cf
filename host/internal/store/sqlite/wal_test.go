package sqlite

import (
	"database/sql"
	"os"
	"testing"
	"time"
)

// wait gives others a moment, in loops that wait for a condition.
func wait() { time.Sleep(100 * time.Microsecond) }

func logSize(t *testing.T, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Every commit here meets a reader, which outlasts what the writer waits for it
// and leaves then. That keeps the engine from starting its log over by itself, for
// as long as the load lasts. The next group finds the reader gone.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 100 MiB")
	}
	dir := t.TempDir()
	s := openTest(t, dir)
	db := openRaw(t, dir)
	const size = 256 << 10
	text := noise(size)
	var largest int64
	for i := range int64(100 << 20 / size) {
		reader := startReading(t, db)
		st := testStep("t1", i+1)
		st.Events[0].Description = text
		if err := s.Commit(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		settle(t, s)
		if err := reader.Rollback(); err != nil {
			t.Fatal(err)
		}
		settle(t, s)
		settle(t, s)
		largest = max(largest, logSize(t, s))
	}
	if largest < trimBytes || largest > trimBytes+4*size {
		t.Errorf("log was %d KiB at its largest, want %d to %d", largest>>10, trimBytes>>10, (trimBytes+4*size)>>10)
	}
}

// settle returns when the writer is done with all that came before, but for the
// care of its log after this.
func settle(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Purge(t.Context(), testTime); err != nil {
		t.Fatal(err)
	}
}

// startReading returns a transaction that sees the store as it is now.
func startReading(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	countEvents(t, tx)
	return tx
}

func countEvents(t *testing.T, tx *sql.Tx) (n int) {
	t.Helper()
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A reader that stays does not hold up the writer, it only keeps the log from
// shrinking.
func TestLongReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(t, dir)
	if err := s.Commit(t.Context(), testStep("t1", 1)); err != nil {
		t.Fatal(err)
	}
	tx := startReading(t, openRaw(t, dir))
	defer tx.Rollback()
	text := noise(64 << 10)
	for i := range int64(500) { // 32 MiB, past the point where the engine checks the log in
		st := testStep("t1", i+2)
		st.Events[0].Description = text
		began := time.Now()
		if err := s.Commit(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= busyMS*time.Millisecond {
			t.Fatalf("commit %d took %v beside a long reader", i, took)
		}
	}
	if n := countEvents(t, tx); n != 1 {
		t.Errorf("reader sees %d events, want the 1 of its time", n)
	}
}
