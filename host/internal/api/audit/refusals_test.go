package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skep/host/internal/api/audit"
	"skep/host/internal/filelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running lets a log write refusals until stop.
func running(t *testing.T, opt audit.Options) (l *audit.Log, path string, stop func()) {
	path = filepath.Join(t.TempDir(), audit.Name)
	l = open(t, path, opt)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return l, path, stop
}

// refused adds up what the log says was refused.
func refused(t *testing.T, path string) (lines, count int64) {
	t.Helper()
	err := audit.Entries(path, func(_ int64, e audit.Entry) {
		lines++
		count += max(1, e.Count)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines, count
}

// Refusals alike become one line with their number.
func TestRefused(t *testing.T) {
	t.Parallel()
	l, path, stop := running(t, audit.Options{Every: time.Hour})
	for i := range 100 {
		l.RecordRefusal(audit.Entry{Act: "request", Address: "192.0.2.1", Reason: "invalid API key", RequestID: fmt.Sprint(i)})
	}
	l.RecordRefusal(audit.Entry{Act: "request", Address: "192.0.2.2", Reason: "invalid API key"})
	l.RecordRefusal(audit.Entry{Act: "request", Address: "192.0.2.1", Principal: "user:alice", Reason: "invalid role"})
	stop()
	if lines, count := refused(t, path); lines != 3 || count != 102 {
		t.Errorf("%d lines for %d refusals", lines, count)
	}
	if text := string(read(t, path)); !strings.Contains(text, `"outcome":"refused"`) || !strings.Contains(text, `"count":100`) || !strings.Contains(text, `"request_id":"0"`) {
		t.Error(text)
	}
	verify(t, path, 3)
}

// They are written while the host runs.
func TestRefusedSoon(t *testing.T) {
	t.Parallel()
	l, path, _ := running(t, audit.Options{Every: time.Millisecond})
	l.RecordRefusal(audit.Entry{Act: "request", Reason: "r"})
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if lines, _ := refused(t, path); lines == 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it was never written")
		}
	}
}

// A flood from ever new addresses has a bound on the disk, loses none of its
// number, and acts are recorded all the same.
func TestFlood(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Unix(1e9, 0)}
	l, path, stop := running(t, audit.Options{Every: time.Hour, Now: c.now})
	const n = 200_000
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range n / 4 {
				l.RecordRefusal(audit.Entry{Act: "request", Address: fmt.Sprint("a", w, "-", i), Reason: "invalid API key"})
			}
		})
	}
	record(t, l, 3)
	wg.Wait()
	stop()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, count := refused(t, path)
	info, err := os.Stat(path)
	if err != nil || lines > 300 || count != n+3 || info.Size() > 200<<10 {
		t.Errorf("%d lines, %d bytes for %d refusals, %v", lines, info.Size(), count-3, err)
	}
	verify(t, path, lines)
}

// An hour under a flood takes as many lines as the bucket has.
func TestLongFlood(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Unix(1e9, 0)}
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{Now: c.now})
	total := int64(0)
	for second := range 600 {
		for i := range 300 {
			l.RecordRefusal(audit.Entry{Act: "request", Address: fmt.Sprint(second, "-", i), Reason: "invalid API key"})
			total++
		}
		c.move(time.Second)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, count := refused(t, path); lines > 256+600+60+1 || count != total {
		t.Errorf("%d lines for %d refusals of %d", lines, count, total)
	}
}

// What cannot be written is counted in a later line.
func TestRefusedOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	l.RecordRefusal(audit.Entry{Act: "request", Reason: "r"})
	l.RecordRefusal(audit.Entry{Act: "request", Reason: "r"})
	l.Break()
	if err := l.Flush(); err == nil {
		t.Fatal("a broken file takes entries")
	}
	if n := l.Waiting(); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
}

// A hanging disk delays no refusal.
func TestRefusedNeverWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	hold, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := filelock.Exclusive(hold); err != nil {
		t.Fatal(err)
	}
	l.RecordRefusal(audit.Entry{Act: "request", Reason: "before"})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Flush(); err != nil {
			t.Error(err)
		}
	})
	for i := range 10_000 {
		l.RecordRefusal(audit.Entry{Act: "request", Address: fmt.Sprint(i), Reason: "while it hangs"})
	}
	if err := filelock.Unlock(hold); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, count := refused(t, path); count != 10_001 {
		t.Errorf("%d of 10001 refusals are told", count)
	}
}
