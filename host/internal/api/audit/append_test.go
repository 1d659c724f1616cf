package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	opt := audit.Options{MaxSize: 1 << 10, Keep: 4 << 10}
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
