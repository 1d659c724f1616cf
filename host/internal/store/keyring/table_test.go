package keyring

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// memoryTable is a table in memory, which fails on demand.
type memoryTable struct {
	lines [][]byte
	// fail is what the next change answers, after it was made if made is set.
	fail error
	made bool
}

func (m *memoryTable) Name() string { return "of tests" }

func (m *memoryTable) Load() ([]byte, error) {
	if m.lines == nil {
		return nil, fs.ErrNotExist
	}
	return bytes.Join(m.lines, nil), nil
}

func (m *memoryTable) change(to [][]byte) error {
	err := m.fail
	if m.fail = nil; err == nil || m.made {
		m.lines = to
	}
	return err
}

func (m *memoryTable) Append(line []byte) error {
	return m.change(append(m.lines[:len(m.lines):len(m.lines)], line))
}

func (m *memoryTable) Replace(text []byte) error {
	return m.change(bytes.SplitAfter(text, []byte("\n")))
}

func mustOpenTable(t *testing.T, m *memoryTable) *Ring {
	t.Helper()
	r, err := OpenTable(m, Options{KEK: kek(1)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTable: a keyring in a table is what it is in a file, and never plain.
func TestTable(t *testing.T) {
	t.Parallel()
	m := &memoryTable{}
	if _, err := OpenTable(m, Options{}); err == nil || !strings.Contains(err.Error(), "[store] keyring") {
		t.Errorf("OpenTable() without a key = %v", err)
	}
	r := mustOpenTable(t, m)
	if r.Exists() {
		t.Error("an empty table has a keyring")
	}
	kept := mustSeal(t, r, "acme", "kept")
	other := mustSeal(t, r, "other", "other")
	again := mustOpenTable(t, m)
	wantText(t, again, kept, "kept")
	wantText(t, again, other, "other")
	if err := again.Destroy("other"); err != nil {
		t.Fatal(err)
	}
	again = mustOpenTable(t, m)
	wantText(t, again, kept, "kept")
	if _, err := again.Open(nil, other, nil); !errors.Is(err, ErrDestroyed) {
		t.Errorf("Open() of what a destroyed key sealed = %v", err)
	}
	if _, err := OpenTable(m, Options{KEK: kek(2)}); !errors.Is(err, ErrWrongKEK) {
		t.Errorf("OpenTable() with another key = %v", err)
	}
	if err := again.Rewrap(nil); err == nil {
		t.Error("Rewrap() left the keys of a table plain")
	}
	if text, err := ReadTable(m); err != nil || !bytes.Equal(text, bytes.Join(m.lines, nil)) {
		t.Errorf("ReadTable() = %q, %v", text, err)
	}
	m.lines[len(m.lines)-2] = m.lines[len(m.lines)-2][:20]
	if _, err := OpenTable(m, Options{KEK: kek(1)}); !errors.Is(err, errDamaged) {
		t.Errorf("OpenTable() of a line that is cut = %v", err)
	}
}

// TestTableFails: what a table may have of a change that failed is written over.
func TestTableFails(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		m := &memoryTable{made: made}
		r := mustOpenTable(t, m)
		kept := mustSeal(t, r, "acme", "kept")
		m.fail = errors.New("the server is away")
		if _, err := r.Sealer("other"); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("Sealer() = %v", err)
		}
		other := mustSeal(t, r, "other", "other")
		again := mustOpenTable(t, m)
		wantText(t, again, kept, "kept")
		wantText(t, again, other, "other")
		if len(again.Entries()) != 2 {
			t.Errorf("made %v: the table has %v", made, again.Entries())
		}
	}
}

// TestTableRewrapped: a ring that reads a table anew whose keys another ring has wrapped by
// another key keeps the keys that it has.
func TestTableRewrapped(t *testing.T) {
	t.Parallel()
	m := &memoryTable{}
	r := mustOpenTable(t, m)
	kept := mustSeal(t, r, "acme", "kept")
	if err := mustOpenTable(t, m).Rewrap(kek(2)); err != nil {
		t.Fatal(err)
	}
	r.lookAgain(1)
	wantText(t, r, kept, "kept")
	if err := r.Destroy("other"); !errors.Is(err, ErrWrongKEK) {
		t.Errorf("Destroy() = %v", err)
	}
	wantText(t, r, kept, "kept")
}

// TestText: the text of a keyring is one, with the keys wrapped as asked.
func TestText(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, ringPath(t), nil)
	kept := mustSeal(t, r, "acme", "kept")
	text, err := r.Text(kek(1))
	if err != nil {
		t.Fatal(err)
	}
	m := &memoryTable{}
	if err := m.Replace(text); err != nil {
		t.Fatal(err)
	}
	wantText(t, mustOpenTable(t, m), kept, "kept")
}
