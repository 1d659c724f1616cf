package audit_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
)

// copyLog copies lines of a log to another directory.
func copyLog(t *testing.T, lines [][]byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), audit.Name)
	put(t, path, bytes.Join(lines, nil))
	return path
}

// linesOf returns the lines of a log, and the hash of line n, from 1.
func linesOf(t *testing.T, path string, n int) (lines [][]byte, hash string) {
	t.Helper()
	lines = bytes.SplitAfter(read(t, path), []byte{'\n'})
	lines = lines[:len(lines)-1]
	_, hash, _ = strings.Cut(string(lines[n-1][bytes.LastIndex(lines[n-1], []byte(`,"hash"`)):]), `"hash":"`)
	return lines, hash[:64]
}

// TestCopiedDirectory: the log of a host whose directory began as a copy of another's hides no cut of that one, and is
// not taken for it: whole, and when its older files are archived.
func TestCopiedDirectory(t *testing.T) {
	t.Parallel()
	table, a, b := linkedLogs(t)
	lines, _ := linesOf(t, a.path, 1)
	c := openLog(t, table, "c", copyLog(t, lines))
	record(t, c.Log, 3)
	exchange(t, c, a, b)
	if wrong := findWrong(t, nil, a.path, b.path, c.path); wrong != nil {
		t.Fatalf("uncut: %q", wrong)
	}
	cut := copyLog(t, lines[:4])
	want := []string{"a lacks 6", "a lacks 9"}
	report := func(prevs []string, files ...string) audit.TogetherReport {
		t.Helper()
		r, err := audit.VerifyTogether(logFiles(files...), prevs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Logs {
			var missing []string
			for _, m := range l.Missing {
				missing = append(missing, fmt.Sprint(m.Host, " lacks ", m.Seq))
			}
			if l.File == cut && !slices.Equal(missing, want) || l.File != cut && missing != nil {
				t.Errorf("%s lacks %q", l.File, missing)
			}
		}
		return r
	}
	report(nil, cut, b.path, c.path)
	copied, prev := linesOf(t, c.path, 10)
	report([]string{prev}, cut, b.path, copyLog(t, copied[10:]))
}

// TestForgedJoin: who appends the name of another host to a log hides no cut of that one: both logs are named.
func TestForgedJoin(t *testing.T) {
	t.Parallel()
	_, a, b := linkedLogs(t)
	lines, _ := linesOf(t, a.path, 1)
	cut := copyLog(t, lines[:4])
	if err := b.Record(audit.Entry{Act: audit.ActJoin, Outcome: audit.Done, Target: "a"}); err != nil {
		t.Fatal(err)
	}
	wrong := findWrong(t, nil, cut, b.path)
	if len(wrong) != 4 || !strings.Contains(wrong[0], "the same host as "+b.path) || !strings.HasPrefix(wrong[1], "a lacks 6") || !strings.Contains(wrong[3], "the same host as "+cut) {
		t.Errorf("%q", wrong)
	}
	r, err := audit.VerifyTogether([]audit.LogFile{{Path: cut, Host: "a"}, {Path: b.path, Host: "b"}}, nil, nil)
	if err != nil || len(r.Logs[0].Missing) != 2 || !r.Logs[1].Whole() {
		t.Errorf("with the names of the directories: %+v, %v", r, err)
	}
}

// TestLogInParts: the log of a host may be given in parts, in any order, and what is missing between them is found.
func TestLogInParts(t *testing.T) {
	t.Parallel()
	_, a, b := linkedLogs(t)
	lines, prev := linesOf(t, a.path, 7)
	first, last := copyLog(t, lines[:7]), copyLog(t, lines[7:])
	for _, files := range [][]audit.LogFile{logFiles(first, last, b.path), logFiles(last, first, b.path)} {
		r, err := audit.VerifyTogether(files, []string{prev}, nil)
		if err != nil || !r.Logs[0].Whole() || !r.Logs[1].Whole() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	put(t, first, bytes.Join(lines[:5], nil))
	for i, files := range [][]audit.LogFile{logFiles(first, last, b.path), logFiles(last, first, b.path)} {
		r, err := audit.VerifyTogether(files, []string{prev}, nil)
		if err != nil || len(r.Logs[i].Missing) != 1 || r.Logs[i].Missing[0].Seq != 6 || !r.Logs[1-i].Whole() {
			t.Errorf("cut between parts: %+v, %v", r, err)
		}
	}
}

// TestCurrentName: the name of a log is the last one that its host took, or the one of its directory, and its address the newest
// that was recorded, in whatever order the logs are given.
func TestCurrentName(t *testing.T) {
	t.Parallel()
	table := &headTable{heads: map[string]audit.Head{}}
	path := filepath.Join(t.TempDir(), audit.Name)
	for _, name := range []string{"a", "z", "a"} {
		l := openLog(t, table, name, path)
		exchange(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	now := table.heads["a"]
	old := now
	old.At, old.Address = now.At.Add(-time.Hour), "http://old"
	z := table.heads["z"]
	z.At = now.At.Add(-time.Minute)
	for _, stored := range [][]audit.Head{{old, now, z}, {z, now, old}} {
		r, err := audit.VerifyTogether(logFiles(path), nil, stored)
		if err != nil || !r.Logs[0].Whole() || !slices.Equal(r.Logs[0].Hosts, []string{"z", "a"}) || r.Logs[0].Address != now.Address {
			t.Errorf("%+v, %v", r, err)
		}
	}
	r, err := audit.VerifyTogether([]audit.LogFile{{Path: path, Host: "z"}}, nil, []audit.Head{now, z})
	if err != nil || !slices.Equal(r.Logs[0].Hosts, []string{"a", "z"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
