package sqlite

import (
	"fmt"
	"os"
	"strings"
	"sync"
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

// Readers that overlap all the time keep the engine from starting its log over,
// so that it would grow for as long as the load lasts.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 300 MiB")
	}
	s := openTest(t, t.TempDir())
	for i := range int64(100) {
		if err := s.Commit(t.Context(), testStep("small", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range minReaders {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Events(t.Context(), testStep("small", 1).Task.Key, 0, 100); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var largest int64
	text := strings.Repeat("0123456789abcdef", 4096)
	for i := range int64(4000) {
		st := testStep(fmt.Sprint("t", i%10), i+1)
		st.Events[0].Description = text
		if err := s.Commit(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, logSize(t, s))
	}
	close(stop)
	wg.Wait()
	t.Logf("log was %d MiB at its largest", largest>>20)
	if largest > 2*trimBytes {
		t.Errorf("log grew to %d MiB, want at most %d", largest>>20, 2*trimBytes>>20)
	}
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
	tx, err := behind(t, dir).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	count := func() (n int) {
		t.Helper()
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 1 {
		t.Fatalf("reader sees %d events, want 1", n)
	}
	text := strings.Repeat("0123456789abcdef", 4096)
	began := time.Now()
	const steps = 500 // 32 MiB, past the point where the engine wants to check the log in
	for i := range int64(steps) {
		st := testStep("t1", i+2)
		st.Events[0].Description = text
		if err := s.Commit(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > busyMS*time.Millisecond {
		t.Errorf("%d commits took %v beside a long reader", steps, took)
	}
	if n := count(); n != 1 {
		t.Errorf("reader sees %d events of a later time", n)
	}
}
