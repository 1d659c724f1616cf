package audit_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/api/audit"
)

// small makes a log of a few entries.
func small(t testing.TB, n int) (path string, text []byte) {
	path = filepath.Join(t.TempDir(), audit.Name)
	l := open(t, path, audit.Options{})
	record(t, l, n)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path, read(t, path)
}

// One altered byte is found, wherever it is and whatever it becomes.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	path, text := small(t, 4)
	for i := range text {
		for _, to := range []byte{text[i] ^ 1, text[i] ^ 0x20, '\n', 0, '"', '0'} {
			if to == text[i] {
				continue
			}
			altered := bytes.Clone(text)
			altered[i] = to
			put(t, path, altered)
			var damage *audit.Damage
			if _, err := audit.Verify(path, audit.Expect{}); !errors.As(err, &damage) {
				t.Fatalf("byte %d, %q as %q: %v", i, text[i], to, err)
			}
			want := 1 + bytes.Count(text[:i], []byte{'\n'})
			if damage.Line != want {
				t.Fatalf("byte %d of line %d is found in line %d", i, want, damage.Line)
			}
		}
	}
}

// Every single byte that is left out or put in is found as well.
func TestEveryGap(t *testing.T) {
	t.Parallel()
	path, text := small(t, 3)
	for i := range text {
		for _, altered := range [][]byte{slices.Delete(bytes.Clone(text), i, i+1), slices.Insert(bytes.Clone(text), i, ' '), slices.Insert(bytes.Clone(text), i, '\n')} {
			put(t, path, altered)
			if _, err := audit.Verify(path, audit.Expect{}); err == nil {
				t.Fatalf("at byte %d: %q passes", i, altered)
			}
		}
	}
}

func TestLinesMoved(t *testing.T) {
	t.Parallel()
	path, text := small(t, 5)
	lines := bytes.SplitAfter(text, []byte{'\n'})[:5]
	_, other := small(t, 5)
	foreign := bytes.SplitAfter(other, []byte{'\n'})
	for name, c := range map[string]struct {
		lines [][]byte
		want  string
	}{
		"first removed": {lines[1:], ":1: the log begins with entry 2"},
		"removed":       {[][]byte{lines[0], lines[1], lines[3], lines[4]}, ":3: entry 4 follows entry 2"},
		"reordered":     {[][]byte{lines[0], lines[2], lines[1], lines[3]}, ":2: entry 3 follows entry 1"},
		"repeated":      {[][]byte{lines[0], lines[1], lines[1], lines[2]}, ":3: entry 2 follows entry 2"},
		"replaced":      {[][]byte{lines[0], foreign[1], lines[2]}, ":2: entry 2 does not follow the entry 1"},
		"empty line":    {[][]byte{lines[0], []byte("\n"), lines[1]}, ":2: it is no line"},
		"foreign":       {[][]byte{lines[0], []byte(strings.Repeat("x", 200) + "\n")}, ":2: it does not end with its hash"},
		"too long":      {[][]byte{lines[0], []byte(strings.Repeat("x", 1<<20) + "\n")}, ":2: the line has more than"},
		"cut off":       {[][]byte{lines[0], lines[1][:50]}, ":2: the last line is cut off"},
	} {
		put(t, path, bytes.Join(c.lines, nil))
		if _, err := audit.Verify(path, audit.Expect{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A stored head shows that entries were cut off the end.
func TestCutOff(t *testing.T) {
	t.Parallel()
	path, text := small(t, 5)
	whole := verify(t, path, 5)
	put(t, path, bytes.Join(bytes.SplitAfter(text, []byte{'\n'})[:3], nil))
	verify(t, path, 3)
	if _, err := audit.Verify(path, audit.Expect{Head: whole.Head}); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("with the head: %v", err)
	}
	put(t, path, text)
	if _, err := audit.Verify(path, audit.Expect{Head: whole.Head}); err != nil {
		t.Error(err)
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	path, _ := small(t, 3)
	var got []string
	if err := audit.Entries(path, func(_ int64, e audit.Entry) { got = append(got, e.Act+" "+e.Target) }, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"token.create t0", "token.create t1", "token.create t2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Entries after a broken line are returned, and each damage is reported once.
func TestEntriesBeyondDamage(t *testing.T) {
	t.Parallel()
	path, text := small(t, 6)
	lines := bytes.SplitAfter(text, []byte{'\n'})[:6]
	long := []byte(strings.Repeat("x", 200<<10) + "\n")
	for name, c := range map[string]struct {
		lines [][]byte
		want  []string
	}{
		"altered":    {[][]byte{lines[0], bytes.Replace(lines[1], []byte("t1"), []byte("tx"), 1), lines[2]}, []string{"t0", ":2: it is not as", "t2"}},
		"first":      {[][]byte{[]byte("x\n"), lines[1], lines[2]}, []string{":1: it is no line", "t1", "t2"}},
		"several":    {[][]byte{lines[0], []byte("x\n"), []byte("y\n"), lines[1]}, []string{"t0", ":2: it is no line", "t1"}},
		"too long":   {[][]byte{lines[0], long, lines[1]}, []string{"t0", ":2: the line has more", "t1"}},
		"removed":    {[][]byte{lines[0], lines[2], lines[3]}, []string{"t0", ":2: entry 3 follows entry 1", "t2", "t3"}},
		"two places": {[][]byte{lines[0], lines[2], []byte("x\n"), lines[4]}, []string{"t0", ":2: entry 3 follows entry 1", "t2", ":3: it is no line", "t4"}},
		"cut off":    {[][]byte{lines[0], lines[1][:50]}, []string{"t0", ":2: the last line is cut off"}},
		"long end":   {[][]byte{lines[0], long[:len(long)-1]}, []string{"t0", ":2: the line has more"}},
	} {
		put(t, path, bytes.Join(c.lines, nil))
		var got []string
		var first *audit.Damage
		err := audit.Entries(path, func(_ int64, e audit.Entry) { got = append(got, e.Target) }, func(d *audit.Damage) {
			if first == nil {
				first = d
			}
			got = append(got, d.Error())
		})
		same := func(got, want string) bool { return got == want || want[0] == ':' && strings.Contains(got, want) }
		if !slices.EqualFunc(got, c.want, same) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		var damage *audit.Damage
		if !errors.As(err, &damage) || damage != first {
			t.Errorf("%s: the error is %v, want the first place, %v", name, err, first)
		}
	}
}

// Nothing is not whole, and what is no file is no log.
func TestVerifyNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), audit.Name)
	put(t, path, nil)
	var damage *audit.Damage
	if _, err := audit.Verify(path, audit.Expect{}); !errors.As(err, &damage) || !strings.Contains(err.Error(), "it has no entry") {
		t.Errorf("an empty log: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", t.TempDir()} {
		if _, err := audit.Verify(path, audit.Expect{}); err == nil || !strings.Contains(err.Error(), "is no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
