package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
)

func appendMessages(t *testing.T, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		m := &audit.Message{Gateway: "acp", Realm: "shop", Direction: audit.In, ID: fmt.Sprint("m", i), Size: i, Task: "t"}
		if err := l.Append(audit.Entry{Act: "message", Outcome: "accepted", Message: m}); err != nil {
			t.Fatal(err)
		}
	}
}

// What was appended is in the file at once, as a host that is killed leaves it, and chained
// with what was recorded.
func TestAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.MessagesName)
	l := open(t, path, audit.Options{})
	record(t, l, 1)
	appendMessages(t, l, 3)
	verify(t, path, 4)
	var ids []string
	err := audit.Entries(path, func(_ int64, e audit.Entry) {
		if e.Message != nil {
			ids = append(ids, e.Message.ID)
		}
	}, nil)
	if got := strings.Join(ids, " "); err != nil || got != "m0 m1 m2" {
		t.Errorf("the log has %q, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(audit.Entry{Act: "message"}); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("Append after Close = %v", err)
	}
}

// Entries that come during a write are written together by the next one, and each caller
// returns when its entry is in the file.
func TestAppendTogether(t *testing.T) {
	t.Parallel()
	const most = 50
	path := filepath.Join(t.TempDir(), audit.MessagesName)
	l := open(t, path, audit.Options{Sole: true})
	appendMessages(t, l, 1)
	gathered, release := l.HoldWrites()
	done := make(chan error, most)
	for range most {
		go func() { done <- l.Append(audit.Entry{Act: "message", Outcome: "accepted"}) }()
	}
	awaitGathered(t, gathered, most)
	verify(t, path, 1)
	release()
	for range most {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	verify(t, path, 1+most)
}

// awaitGathered waits until n entries wait for the writer.
func awaitGathered(t *testing.T, gathered func() int, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); gathered() < n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries wait for the writer, want %d", gathered(), n)
		}
	}
}

// Each entry of a batch that cannot be written is told so, and counted.
func TestAppendTogetherFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.MessagesName)
	l, err := audit.Open(path, audit.Options{Sole: true, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	appendMessages(t, l, 1)
	l.Break()
	gathered, release := l.HoldWrites()
	done := make(chan error, 3)
	for range cap(done) {
		go func() { done <- l.Append(audit.Entry{Act: "message"}) }()
	}
	awaitGathered(t, gathered, cap(done))
	release()
	for range cap(done) {
		if err := <-done; err == nil {
			t.Error("an entry was not written, and its caller is told that it was")
		}
	}
	if got := l.Missed(); got != int64(cap(done)) {
		t.Errorf("%d entries count as missed, want %d", got, cap(done))
	}
	if err := l.Close(); err == nil {
		t.Error("the file of a broken log was closed twice")
	}
}

// A sole writer begins a new file where its own was moved, at the latest after an interval,
// and the chain goes on.
func TestSoleWriterLosesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, audit.MessagesName)
	l := open(t, path, audit.Options{Sole: true, MaxSize: 1 << 10})
	appendMessages(t, l, 2)
	if err := os.Rename(path, filepath.Join(dir, "moved.log")); err != nil {
		t.Fatal(err)
	}
	l.Recheck()
	appendMessages(t, l, 1)
	r, err := audit.Verify(path, audit.Expect{Partial: true})
	if err != nil || r.Entries != 2 || r.Repairs != 1 { // that entries were gone is an entry
		t.Errorf("Verify = %+v, %v", r, err)
	}
}

// A long text of a message is cut, so that each line can be read again.
func TestAppendLongTexts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.MessagesName)
	l, long := open(t, path, audit.Options{}), strings.Repeat("é", 1<<20)
	m := &audit.Message{Gateway: long, Realm: long, Direction: audit.Out, ID: long, Type: long, Task: long}
	if err := l.Append(audit.Entry{Act: "message", Outcome: long, Message: m}); err != nil {
		t.Fatal(err)
	}
	if verify(t, path, 1); len(m.ID) != len(long) {
		t.Error("the caller's message was changed")
	}
}

// The oldest files are removed, and those that are left verify from where they begin.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, audit.MessagesName)
	opt := audit.Options{MaxSize: 1 << 10, Keep: 4 << 10, Sole: true}
	l := open(t, path, opt)
	appendMessages(t, l, 200)
	names, err := filepath.Glob(filepath.Join(dir, "messages-*.log"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	var size int64
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > opt.Keep {
		t.Errorf("older files have %d bytes in %q", size, names)
	}
	if _, err := audit.Verify(path, audit.Expect{}); err == nil {
		t.Error("a log without its first entries verifies from entry 1")
	}
	r, err := audit.Verify(path, audit.Expect{Partial: true})
	if err != nil || r.First == 1 || r.Last != 200 {
		t.Errorf("Verify = %+v, %v", r, err)
	}
	if _, err := audit.Verify(path, audit.Expect{Partial: true, Prev: strings.Repeat("0", 64)}); err == nil {
		t.Error("a log verifies behind an entry that is not the one before it")
	}
}

// OnEntry gets texts of bounded length: who follows the log keeps them in memory.
func TestOnEntryIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	size := 0
	l := open(t, filepath.Join(t.TempDir(), audit.Name), audit.Options{OnEntry: func(e audit.Entry) {
		for _, text := range []string{e.Act, e.Outcome, e.Tenant, e.Principal, e.Address, e.RequestID, e.Target, e.Reason, e.Message.ID} {
			if text == "" {
				t.Error("a text is missing")
			}
			size += len(text)
		}
	}})
	err := l.Record(audit.Entry{
		Act: long, Outcome: long, Tenant: long, Principal: long, Address: long, RequestID: long, Target: long, Reason: long,
		Message: &audit.Message{ID: long},
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > 16<<10 {
		t.Errorf("the texts of an entry have %d bytes", size)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// OnEntry gets what was written, with its time and in its order, and nothing that was not.
func TestOnEntry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	var seen []string
	at := time.Unix(1e9, 0)
	l := open(t, path, audit.Options{Now: func() time.Time { return at }, OnEntry: func(e audit.Entry) {
		seen = append(seen, e.Act+" "+e.Time.UTC().Format(time.TimeOnly))
	}})
	for _, act := range []string{"token.create", "token.revoke"} {
		if err := l.Record(audit.Entry{Act: act, Outcome: audit.Done}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(audit.Entry{Act: "late"}); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("Record after Close = %v", err)
	}
	if got := strings.Join(seen, ", "); got != "token.create 01:46:40, token.revoke 01:46:40" {
		t.Errorf("OnEntry was called for %q", got)
	}
}
