package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/api/audit"
)

// clock is a time that the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t testing.TB, path string, opt audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func record(t testing.TB, l *audit.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Record(audit.Entry{Act: "token.create", Outcome: audit.Done, Tenant: "default", Principal: "admin:ada", Target: fmt.Sprint("t", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t testing.TB, path string, want int64) audit.Report {
	t.Helper()
	r, err := audit.Verify(path, audit.Expect{})
	if err != nil || r.Entries != want {
		t.Fatalf("Verify = %+v, %v, want %d entries", r, err, want)
	}
	return r
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func put(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{Now: func() time.Time { return time.Unix(1e9, 0) }})
	record(t, l, 3)
	seq, head := l.Head()
	if r := verify(t, path, 3); r.Head != head || r.Last != seq || r.First != 1 {
		t.Errorf("%+v, head %d %s", r, seq, head)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(audit.Entry{Act: "x"}); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("Record after Close = %v", err)
	}
	record(t, open(t, path, audit.Options{}), 2)
	verify(t, path, 5)
	const want = `{"seq":1,"time":"2001-09-09T01:46:40.000000Z","act":"token.create","outcome":"done","tenant":"default",` +
		`"principal":"admin:ada","target":"t0","prev":"0000`
	if got := string(read(t, path)); !strings.HasPrefix(got, want) {
		t.Errorf("the first line is %.300s", got)
	}
}

// Whatever a caller puts into a text, one act is one line.
func TestInjection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	evil := []string{
		"a\nb", "a\r\n{\"seq\":2}", `","hash":"` + strings.Repeat("0", 64) + `"}`, "\x00\x7f\x1b[2J", "\xff\xfe", "\u2028",
		strings.Repeat("ä", 10_000), strings.Repeat("\x01", 10_000),
	}
	for _, s := range evil {
		if err := l.Record(audit.Entry{Act: "x", Outcome: s, Tenant: s, Principal: s, Address: s, RequestID: s, Target: s, Reason: s}); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, path, int64(len(evil)))
	raw := read(t, path)
	if n := bytes.Count(raw, []byte{'\n'}); n != len(evil) {
		t.Errorf("%d lines for %d entries", n, len(evil))
	}
	if bytes.ContainsAny(raw, "\x00\x1b\r") {
		t.Error("control characters got through")
	}
}

// Two processes, or a host and a command, write to one log.
func TestSeveralWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	var wg sync.WaitGroup
	for range 4 {
		l := open(t, path, audit.Options{MaxSize: 2000})
		for range 2 {
			wg.Go(func() { record(t, l, 20) })
		}
	}
	wg.Wait()
	verify(t, path, 160)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{MaxSize: 1000})
	record(t, l, 20)
	kept, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "audit-*.log"))
	if len(kept) < 3 {
		t.Fatalf("kept %v", kept)
	}
	r := verify(t, path, 20)

	// A crash after a file was put away and before the next was begun.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), "audit-000000000000020.log")); err != nil {
		t.Fatal(err)
	}
	verify(t, path, 20)
	record(t, open(t, path, audit.Options{MaxSize: 1000}), 1)
	verify(t, path, 21)

	// Archived entries are missing unless their head is given.
	first, err := audit.Verify(kept[0], audit.Expect{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	var damage *audit.Damage
	if _, err := audit.Verify(path, audit.Expect{}); !errors.As(err, &damage) || !strings.Contains(err.Error(), "the files with those before it are missing") {
		t.Errorf("without the first file: %v", err)
	}
	if got, err := audit.Verify(path, audit.Expect{Prev: first.Head, Head: r.Head}); err != nil || got.First != first.Last+1 || got.Last != 21 {
		t.Errorf("after %s: %+v, %v", first.Head, got, err)
	}
	if _, err := audit.Verify(path, audit.Expect{Prev: r.Head}); !errors.As(err, &damage) {
		t.Errorf("after another head: %v", err)
	}
}

// A name that is taken is not overwritten.
func TestRotationKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, audit.Name)
	l := open(t, path, audit.Options{MaxSize: 100})
	record(t, l, 1)
	taken := filepath.Join(dir, "audit-000000000000001.log")
	put(t, taken, []byte("precious"))
	record(t, l, 1)
	if got := read(t, taken); string(got) != "precious" {
		t.Errorf("it holds %q", got)
	}
}

// What a crash leaves of a line is set aside, and the log goes on.
func TestTornTail(t *testing.T) {
	t.Parallel()
	for _, torn := range []string{"{", `{"seq":4,"time":"2026`, "\x00\x00\x00", "{\x00\x00\n\x00\n{"} {
		path := filepath.Join(t.TempDir(), audit.Name)
		l := open(t, path, audit.Options{})
		record(t, l, 3)
		_ = l.Close()
		whole := read(t, path)
		put(t, path, append(bytes.Clone(whole), torn...))
		if _, err := audit.Verify(path, audit.Expect{}); err == nil {
			t.Errorf("%q is not noticed", torn)
		}
		record(t, open(t, path, audit.Options{}), 1)
		if r := verify(t, path, 5); r.Repairs != 1 {
			t.Errorf("after %q the report counts %d repairs", torn, r.Repairs)
		}
		if got := read(t, path); !bytes.HasPrefix(got, whole) || !bytes.Contains(got[len(whole):], []byte("audit.repair")) {
			t.Errorf("after %q the log goes on with %s", torn, got[len(whole):])
		}
		kept, _ := filepath.Glob(path + ".torn-4-*")
		if len(kept) != 1 || string(read(t, kept[0])) != torn {
			t.Errorf("%q is kept in %v", torn, kept)
		}
	}
}

// Whole lines that are not as they were written are no accident: a restart goes on
// behind them and takes nothing away, so that they are found for ever.
func TestAlteredEnd(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(lines [][]byte) [][]byte{
		"last":        func(l [][]byte) [][]byte { l[3] = bytes.Replace(l[3], []byte("ada"), []byte("eve"), 1); return l },
		"last two":    func(l [][]byte) [][]byte { l[2], l[3] = []byte("x\n"), []byte("y\n"); return l },
		"all":         func(l [][]byte) [][]byte { return [][]byte{[]byte("x\n")} },
		"empty lines": func(l [][]byte) [][]byte { return append(l, []byte("\n\n")) },
		"and torn": func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte("ada"), []byte("eve"), 1)
			return append(l, []byte("{"))
		},
	} {
		path := filepath.Join(t.TempDir(), audit.Name)
		l := open(t, path, audit.Options{})
		record(t, l, 4)
		_ = l.Close()
		altered := bytes.Join(alter(bytes.SplitAfter(read(t, path), []byte{'\n'})[:4]), nil)
		put(t, path, altered)
		for range 2 {
			l := open(t, path, audit.Options{})
			record(t, l, 1)
			_ = l.Close()
		}
		var damage *audit.Damage
		if _, err := audit.Verify(path, audit.Expect{}); !errors.As(err, &damage) {
			t.Errorf("%s: Verify = %v", name, err)
		}
		got := read(t, path)
		kept := altered[:bytes.LastIndexByte(altered, '\n')+1]
		if !bytes.HasPrefix(got, kept) || bytes.Count(got, []byte(`"outcome":"failed"`)) != 1 || !bytes.Contains(got, []byte("are left where they are")) {
			t.Errorf("%s: the log goes on with %s", name, got)
		}
	}
}

func TestTornBeginning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	put(t, path, []byte(`{"seq":1,"ti`))
	record(t, open(t, path, audit.Options{}), 1)
	verify(t, path, 2)
	put(t, path, bytes.Repeat([]byte("x"), 2<<20))
	if _, err := audit.Open(path, audit.Options{}); err == nil || !strings.Contains(err.Error(), "move the file elsewhere") {
		t.Errorf("Open of garbage = %v", err)
	}
}

// Cutting or removing the log of a running host leaves a trace in it.
func TestCutWhileInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	record(t, l, 4)
	lines := bytes.SplitAfter(read(t, path), []byte{'\n'})
	if err := os.Truncate(path, int64(len(lines[0])+len(lines[1]))); err != nil {
		t.Fatal(err)
	}
	record(t, l, 1)
	verify(t, path, 4)
	if !bytes.Contains(read(t, path), []byte("the entries from 3 on were gone; the last of them was 4")) {
		t.Errorf("no trace in %s", read(t, path))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	record(t, l, 1)
	verify(t, path, 2)
	if !bytes.Contains(read(t, path), []byte("the entries from 1 on were gone")) {
		t.Errorf("no trace in %s", read(t, path))
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	if _, err := audit.Open(filepath.Join(t.TempDir(), "none", audit.Name), audit.Options{}); err == nil {
		t.Error("Open in no directory succeeds")
	}
	if _, err := audit.Verify(filepath.Join(t.TempDir(), audit.Name), audit.Expect{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Verify of nothing = %v", err)
	}
}

func BenchmarkRecord(b *testing.B) {
	l := open(b, filepath.Join(b.TempDir(), audit.Name), audit.Options{})
	for b.Loop() {
		if err := l.Record(audit.Entry{Act: "token.create", Outcome: audit.Done, Principal: "admin:ada"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	l := open(b, filepath.Join(b.TempDir(), audit.Name), audit.Options{})
	for b.Loop() {
		l.RecordRefusal(audit.Entry{Act: "request", Address: "192.0.2.1", Reason: "invalid API key"})
	}
}
