package audit_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/audit"
)

// headTable is what hosts share; it fails while it is away.
type headTable struct {
	heads map[string]audit.Head
	away  error
	// full is the error of what writes alone.
	full error
}

func (t *headTable) Heads(context.Context) ([]audit.Head, error) {
	return slices.Collect(maps.Values(t.heads)), t.away
}

func (t *headTable) KeepHead(_ context.Context, h audit.Head) error {
	err := cmp.Or(t.away, t.full)
	if err == nil {
		h.At, h.Address = time.Unix(1e9, 0), "http://"+h.Host
		t.heads[h.Host] = h
	}
	return err
}

// logHost is a host with a log beside others.
type logHost struct {
	*audit.Log
	*audit.HeadExchange
	path string
}

func joinLogs(t *testing.T, table *headTable, name string) *logHost {
	t.Helper()
	path := filepath.Join(t.TempDir(), audit.Name)
	return openLog(t, table, name, path)
}

// openLog starts a host on a log that may be there.
func openLog(t *testing.T, table *headTable, name, path string) *logHost {
	t.Helper()
	l := open(t, path, audit.Options{})
	if err := l.Record(audit.Entry{Act: audit.ActJoin, Outcome: audit.Done, Target: name}); err != nil {
		t.Fatal(err)
	}
	return &logHost{l, audit.NewHeadExchange(l, table, name), path}
}

func exchange(t *testing.T, hosts ...*logHost) {
	t.Helper()
	for _, h := range hosts {
		if err := h.Exchange(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// linkedLogs are the logs of two hosts that have recorded each other's heads.
func linkedLogs(t *testing.T) (table *headTable, a, b *logHost) {
	t.Helper()
	table = &headTable{heads: map[string]audit.Head{}}
	a, b = joinLogs(t, table, "a"), joinLogs(t, table, "b")
	for range 3 {
		record(t, a.Log, 2)
		record(t, b.Log, 1)
		exchange(t, a, b, a)
	}
	return table, a, b
}

func logFiles(paths ...string) (files []audit.LogFile) {
	for _, path := range paths {
		files = append(files, audit.LogFile{Path: path})
	}
	return files
}

// findWrong verifies logs and returns what is not as it was written, one line each.
func findWrong(t *testing.T, stored []audit.Head, files ...string) (wrong []string) {
	t.Helper()
	r, err := audit.VerifyTogether(logFiles(files...), nil, stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Logs {
		if l.Damage != nil {
			wrong = append(wrong, fmt.Sprint(l.Hosts, " ", l.Damage.Reason))
		}
		for _, m := range l.Missing {
			wrong = append(wrong, fmt.Sprint(m.Host, " lacks ", m.Seq, ", of ", m.At.Unix(), ", in ", filepath.Base(filepath.Dir(m.File)), " ", m.Entry))
		}
	}
	for _, m := range r.Absent {
		wrong = append(wrong, fmt.Sprint("absent ", m.Host, " with ", m.Seq))
	}
	return wrong
}

// TestHeadsOnce: hosts without acts record each other's heads once, and one more act is recorded.
func TestHeadsOnce(t *testing.T) {
	t.Parallel()
	_, a, b := linkedLogs(t)
	exchange(t, a, b, a, b)
	before, _ := a.Head()
	beforeB, _ := b.Head()
	for range 5 {
		exchange(t, a, b)
	}
	after, _ := a.Head()
	afterB, _ := b.Head()
	if before != after || beforeB != afterB {
		t.Errorf("hosts without acts have entries %d to %d and %d to %d", before, after, beforeB, afterB)
	}
	record(t, b.Log, 1)
	exchange(t, b, a, b)
	if got, _ := a.Head(); got != after+1 {
		t.Errorf("after an act of the other host the log has entry %d, want %d", got, after+1)
	}
	if wrong := findWrong(t, nil, a.path, b.path); wrong != nil {
		t.Errorf("%q", wrong)
	}
}

// TestVerifyTogether: a log that is cut, altered or replaced is named by what the other one has recorded.
func TestVerifyTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(lines [][]byte) [][]byte
		want   []string
	}{
		"untouched": {func(l [][]byte) [][]byte { return l }, nil},
		// The last act of a, and the head of b behind it.
		"cut at its end":     {func(l [][]byte) [][]byte { return l[:len(l)-2] }, []string{"a lacks 9"}},
		"cut to one entry":   {func(l [][]byte) [][]byte { return l[:1] }, []string{"a lacks 3", "a lacks 6", "a lacks 9"}},
		"without one line":   {func(l [][]byte) [][]byte { return slices.Delete(slices.Clone(l), 3, 4) }, []string{"[a] entry 5 follows entry 3"}},
		"without its start":  {func(l [][]byte) [][]byte { return l[1:] }, []string{"[a] the log begins with entry 2"}},
		"a line is altered":  {func(l [][]byte) [][]byte { l[2] = bytes.Replace(l[2], []byte("ada"), []byte("eve"), 1); return l }, []string{"[a] it is not as it was", "a lacks 3"}},
		"without its file":   {nil, []string{"[] there is no log", "absent a with 9"}},
		"without any line":   {func([][]byte) [][]byte { return nil }, []string{"[] it has no entry", "absent a with 9"}},
		"replaced by a copy": {func(l [][]byte) [][]byte { return append(l[:0:0], l[:6]...) }, []string{"a lacks 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, b := linkedLogs(t)
			lines := bytes.SplitAfter(read(t, a.path), []byte{'\n'})
			if c.change == nil {
				a.path = filepath.Join(t.TempDir(), "none")
			} else {
				put(t, a.path, bytes.Join(c.change(lines[:len(lines)-1]), nil))
			}
			wrong := findWrong(t, nil, a.path, b.path)
			if !slices.EqualFunc(wrong, c.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", wrong, c.want)
			}
		})
	}
}

// TestReplacedLog: a host that begins a fresh log under its name is found, also when the new log has become
// longer than the old one. It says itself that its log lacks what it has made known, and goes on.
func TestReplacedLog(t *testing.T) {
	t.Parallel()
	table, a, b := linkedLogs(t)
	fresh := openLog(t, table, "a", filepath.Join(t.TempDir(), audit.Name))
	exchange(t, fresh)
	if got := string(read(t, fresh.path)); !strings.Contains(got, "which this host made known at 2001-09-09T01:46:40.000000Z, was gone") {
		t.Errorf("the host does not record that its log was cut: %s", got)
	}
	record(t, fresh.Log, 20)
	exchange(t, fresh, b)
	stored, _ := table.Heads(t.Context())
	wrong := findWrong(t, stored, fresh.path, b.path)
	want := []string{"a lacks 3, of 1000000000, in ", "a lacks 6", "a lacks 9"}
	if !slices.EqualFunc(wrong, want, strings.HasPrefix) {
		t.Errorf("%q, want %q", wrong, want)
	}
	wrong = findWrong(t, nil, a.path, fresh.path, b.path)
	if len(wrong) != 2 || !strings.Contains(wrong[0], "the same host as "+fresh.path) || !strings.Contains(wrong[1], "the same host as "+a.path) {
		t.Errorf("with the old log, too: %q", wrong)
	}
}

// TestCutOffline: entries that were cut while a host was down are found although the host, which goes on past
// their numbers, replaces its head in the store, and no other host has recorded it.
func TestCutOffline(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= 3; cut++ {
		table, a, b := linkedLogs(t)
		record(t, a.Log, 3)
		exchange(t, a)
		last, _ := a.Head()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(read(t, a.path), []byte{'\n'})
		put(t, a.path, bytes.Join(lines[:len(lines)-1-cut], nil))
		a = openLog(t, table, "a", a.path)
		record(t, a.Log, 3)
		exchange(t, a, b, a)
		want := []string{fmt.Sprintf("a lacks %d,", last)}
		if wrong := findWrong(t, nil, a.path, b.path); !slices.EqualFunc(wrong, want, strings.HasPrefix) {
			t.Errorf("%d cut: %q, want %q", cut, wrong, want)
		}
	}
}

// TestOwnHeadOnce: a host that starts records its head of the store once, and once that its log lacks it, also while the store does
// not take another.
func TestOwnHeadOnce(t *testing.T) {
	t.Parallel()
	table, _, _ := linkedLogs(t)
	fresh := openLog(t, table, "a", filepath.Join(t.TempDir(), audit.Name))
	table.full = errors.New("full")
	for range 3 {
		if err := fresh.Exchange(t.Context()); !errors.Is(err, table.full) {
			t.Fatal(err)
		}
	}
	table.full = nil
	exchange(t, fresh, fresh)
	if seq, _ := fresh.Head(); seq != 3 {
		t.Errorf("the log has %d entries, want cluster.join, audit.repair, audit.heads:\n%s", seq, read(t, fresh.path))
	}
}

// TestHeadsAway: a host whose store is away misses heads and goes on; what changed meanwhile it records then.
func TestHeadsAway(t *testing.T) {
	t.Parallel()
	table, a, b := linkedLogs(t)
	away := errors.New("away")
	table.away = away
	record(t, a.Log, 3)
	for range 2 {
		if err := a.Exchange(t.Context()); !errors.Is(err, away) {
			t.Fatal(err)
		}
	}
	table.away = nil
	exchange(t, a, b)
	seq, hash := a.Head()
	stored := table.heads["a"]
	if stored.Seq != seq || stored.Hash != hash {
		t.Errorf("the store has %+v, the log ends with %d", stored, seq)
	}
	if wrong := findWrong(t, []audit.Head{stored}, a.path, b.path); wrong != nil {
		t.Errorf("%q", wrong)
	}
}

// TestFullDisk: an exchange that has only read the log's end says not that the log can be written again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	_, a, _ := linkedLogs(t)
	exchange(t, a)
	a.NoteWrite(errors.New("no space left"))
	exchange(t, a)
	if a.LastError() == nil {
		t.Error("the warning is gone, and nothing was written")
	}
	if record(t, a.Log, 1); a.LastError() != nil {
		t.Error(a.LastError())
	}
}

// TestHeadsInServer: what no other log has recorded yet is found by what the store has.
func TestHeadsInServer(t *testing.T) {
	t.Parallel()
	table, a, b := linkedLogs(t)
	record(t, a.Log, 1)
	exchange(t, a)
	lines := bytes.SplitAfter(read(t, a.path), []byte{'\n'})
	put(t, a.path, bytes.Join(lines[:len(lines)-3], nil)) // the act, and what b had
	stored, _ := table.Heads(t.Context())
	if wrong := findWrong(t, nil, a.path, b.path); wrong != nil {
		t.Errorf("without the store: %q", wrong)
	}
	if wrong := findWrong(t, stored, a.path, b.path); len(wrong) != 1 || !strings.HasPrefix(wrong[0], "a lacks 11") {
		t.Errorf("with the store: %q", wrong)
	}
	if wrong := findWrong(t, stored, a.path); len(wrong) != 2 || wrong[1] != "absent b with "+fmt.Sprint(table.heads["b"].Seq) {
		t.Errorf("without the other log: %q", wrong)
	}
}

// TestManyHeads: the heads of many hosts fit into lines, and are all recorded.
func TestManyHeads(t *testing.T) {
	t.Parallel()
	table := &headTable{heads: map[string]audit.Head{}}
	for i := range 100 {
		name := fmt.Sprint(i, strings.Repeat("N", 60))
		table.heads[name] = audit.Head{Host: name, Address: strings.Repeat(`\`, 512), Seq: math.MaxInt64, Hash: strings.Repeat("f", 64)}
	}
	a := joinLogs(t, table, "a")
	exchange(t, a)
	verify(t, a.path, 8)
	r, err := audit.VerifyTogether(logFiles(a.path), nil, nil)
	if err != nil || len(r.Absent) != 100 || r.Heads != 100 {
		t.Errorf("%d heads of %d hosts, %v", r.Heads, len(r.Absent), err)
	}
}

// TestForgedRows: rows that no host has written break no log: rows that are no heads are left out, and
// counted in the host's log once.
func TestForgedRows(t *testing.T) {
	t.Parallel()
	table := &headTable{heads: map[string]audit.Head{}}
	long, hash := strings.Repeat("\x01", 512), strings.Repeat("f", 64)
	good := audit.Head{Host: "b", Address: "http://b", Seq: 1, Hash: hash, At: time.Unix(1e9, 0)}
	table.heads["b"] = good
	for i, change := range []func(*audit.Head){
		func(h *audit.Head) { h.Host = "" },
		func(h *audit.Head) { h.Host = long },
		func(h *audit.Head) { h.Host = strings.Repeat("b", 65) },
		func(h *audit.Head) { h.Address = long },
		func(h *audit.Head) { h.Address = strings.Repeat("b", 513) },
		func(h *audit.Head) { h.Address = "http://\xff" },
		func(h *audit.Head) { h.Hash = long },
		func(h *audit.Head) { h.Hash = strings.ToUpper(hash) },
		func(h *audit.Head) { h.Seq = 0 },
		func(h *audit.Head) { h.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(h *audit.Head) { h.At = time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		h := good
		h.Host = fmt.Sprint("bad", i)
		change(&h)
		table.heads[fmt.Sprint(i)] = h
	}
	var text bytes.Buffer
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	x := audit.NewHeadExchange(l, table, "a")
	for range 2 {
		if err := x.Exchange(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, path, 1)
	if n := strings.Count(text.String(), "rows=11"); n != 1 {
		t.Errorf("counted %d times: %s", n, text.String())
	}
	stored, _ := table.Heads(t.Context())
	r, err := audit.VerifyTogether(logFiles(path), nil, stored)
	if err != nil || len(r.Absent) != 1 || r.Absent[0].Host != "b" || !r.Logs[0].Whole() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLongestEntry: an entry fits into a line whatever its caller gives.
func TestLongestEntry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	s := strings.Repeat("\x01", 1000)
	heads := slices.Repeat([]audit.Head{{Host: strings.Repeat("b", 64), Address: strings.Repeat(`"`, 512), Seq: math.MaxInt64, Hash: strings.Repeat("f", 64)}, {Host: s, Address: s, Seq: 1, Hash: s}}, 50)
	m := &audit.Message{Gateway: s, Realm: s, Direction: audit.Out, ID: s, Type: s, Size: math.MaxInt64, SHA256: strings.Repeat("f", 64), Task: s}
	if err := l.Record(audit.Entry{Act: s, Outcome: s, Tenant: s, Principal: s, Address: s, RequestID: s, Target: s, Reason: s, Count: math.MaxInt64, Message: m, Heads: heads}); err != nil {
		t.Fatal(err)
	}
	verify(t, path, 1)
}

// TestArchivedStart: a log whose older files were archived follows the hash of their last entry.
func TestArchivedStart(t *testing.T) {
	t.Parallel()
	_, a, b := linkedLogs(t)
	lines := bytes.SplitAfter(read(t, a.path), []byte{'\n'})
	_, prev, _ := strings.Cut(string(lines[3][bytes.LastIndex(lines[3], []byte(`,"hash"`)):]), `"hash":"`)
	put(t, a.path, bytes.Join(lines[4:], nil)) // a head of b in it names its host
	r, err := audit.VerifyTogether(logFiles(a.path, b.path), []string{prev[:64]}, nil)
	if err != nil || !r.Logs[0].Whole() || !r.Logs[1].Whole() || len(r.Absent) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = audit.VerifyTogether(logFiles(a.path, b.path), nil, nil); err != nil || r.Logs[0].Damage == nil {
		t.Errorf("without the hash: %+v, %v", r, err)
	}
}
