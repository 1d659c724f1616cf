package quarantine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func id(n byte) ID { return ID{n} }

func open(t *testing.T, path string) *RunningSet {
	t.Helper()
	s, err := OpenRunningSet(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// die leaves the file as the death of its process would.
func die(t *testing.T, s *RunningSet) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantSuspects(t *testing.T, s *RunningSet, want map[ID]int) {
	t.Helper()
	if diff := cmp.Diff(want, s.Suspects()); diff != "" {
		t.Errorf("suspects (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatComputedIsSuspect(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	s := open(t, path)
	wantSuspects(t, s, map[ID]int{})
	numbers := map[byte]int{}
	for n := range byte(5) {
		numbers[n] = s.Begin(id(n))
	}
	s.Computing(numbers[1])
	s.Computing(numbers[2])
	s.Waiting(numbers[2])
	s.Computing(numbers[3])
	s.End(id(3), numbers[3])
	s.Computing(numbers[4])
	s.Stop(id(4), numbers[4])
	die(t, s)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	wantSuspects(t, open(t, path), map[ID]int{id(1): 0})
}

func TestStrikes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	s := open(t, path)
	for n := range byte(3) {
		s.Computing(s.Begin(id(n)))
	}
	die(t, s)
	for death := range 3 {
		s = open(t, path)
		wantSuspects(t, s, map[ID]int{id(0): death, id(1): 0, id(2): 0})
		s.Computing(s.Begin(id(0))) // 1 waits at every death, 2 never begins
		s.Begin(id(1))
		die(t, s)
	}
	s = open(t, path)
	wantSuspects(t, s, map[ID]int{id(0): 3, id(1): 0, id(2): 0})

	// A clean end keeps crash counts and adds none.
	n := s.Begin(id(0))
	s.Computing(n)
	s.Stop(id(0), n)
	s.Forget(id(2))
	s.Forget(id(9))
	die(t, s)
	s = open(t, path)
	wantSuspects(t, s, map[ID]int{id(0): 3, id(1): 0})

	// What runs to its end is forgiven.
	s.End(id(0), s.Begin(id(0)))
	s.End(id(1), s.Begin(id(1)))
	die(t, s)
	wantSuspects(t, open(t, path), map[ID]int{})
}

func TestStrikesDoNotOverflow(t *testing.T) {
	t.Parallel()
	got, ok := slot{state: computing, suspect: true, crashes: 255}.afterDeath()
	if !ok || got.crashes != 255 {
		t.Errorf("%+v, %v", got, ok)
	}
}

func TestForeignFiles(t *testing.T) {
	t.Parallel()
	newer := header(Life{})
	newer[len(magic)] = version + 1
	for name, content := range map[string][]byte{
		"empty": {}, "short": []byte("skep-run"), "garbage": bytes.Repeat([]byte{0xff}, 1000), "newer": newer,
		"header alone": header(Life{}), "cut slot": append(header(Life{}), slot{computing, 0, false, id(1)}.encode()[:40]...),
		"garbage slot": append(header(Life{}), bytes.Repeat([]byte{3}, slotSize)...),
	} {
		path := filepath.Join(t.TempDir(), "running")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		if len(s.Suspects()) != 0 {
			t.Errorf("%s: %v", name, s.Suspects())
		}
		s.Computing(s.Begin(id(7)))
		die(t, s)
		wantSuspects(t, open(t, path), map[ID]int{id(7): 0})
	}
}

// Every single damaged byte costs at most the slot it is in, or is seen.
func TestTornSlots(t *testing.T) {
	t.Parallel()
	content := header(Life{})
	for n := range byte(3) {
		content = append(content, slot{computing, n, true, id(n)}.encode()...)
	}
	path := filepath.Join(t.TempDir(), "running")
	for i := slotSize; i < 2*slotSize; i++ {
		torn := bytes.Clone(content)
		torn[i] ^= 0x81
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		got := s.Suspects()
		if got[id(1)] != 2 || got[id(2)] != 3 || len(got) != 2 && i != slotSize+3 {
			t.Errorf("byte %d: %v", i, got)
		}
		die(t, s)
	}
}

func TestSameTurnTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	twice := append(header(Life{}), slot{computing, 1, true, id(1)}.encode()...)
	twice = append(twice, slot{computing, 2, true, id(1)}.encode()...)
	if err := os.WriteFile(path, twice, 0o600); err != nil {
		t.Fatal(err)
	}
	wantSuspects(t, open(t, path), map[ID]int{id(1): 2})
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := OpenRunningSet(filepath.Join(dir, "nowhere", "running"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := OpenRunningSet(dir, nil); err == nil {
		t.Error("a directory was opened")
	}
}

// A host goes on when it cannot note what runs, and says so once.
func TestFailingWrites(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := OpenRunningSet(filepath.Join(t.TempDir(), "running"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	die(t, s)
	n := s.Begin(id(1))
	s.Computing(n)
	s.End(id(1), n)
	if strings.Count(log.String(), "cannot note which turns run") != 1 {
		t.Errorf("the log says %s", &log)
	}
}

func TestManyTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	s := open(t, path)
	var wg sync.WaitGroup
	for g := range byte(8) {
		wg.Go(func() {
			for n := range 200 {
				turn := ID{g, byte(n)}
				slot := s.Begin(turn)
				s.Computing(slot)
				s.Waiting(slot)
				s.End(turn, slot)
			}
			s.Computing(s.Begin(ID{g, 255}))
		})
	}
	wg.Wait()
	if info, err := os.Stat(path); err != nil || info.Size() > 9*slotSize {
		t.Errorf("%d bytes for 8 turns at once, %v", info.Size(), err)
	}
	die(t, s)
	want := map[ID]int{}
	for g := range byte(8) {
		want[ID{g, 255}] = 0
	}
	wantSuspects(t, open(t, path), want)
}

func BenchmarkTurn(b *testing.B) {
	s, err := OpenRunningSet(filepath.Join(b.TempDir(), "running"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		n := s.Begin(id(1))
		s.Computing(n)
		s.Waiting(n)
		s.End(id(1), n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(header(Life{}))
	f.Add(append(header(Life{}), slot{computing, 1, true, id(1)}.encode()...))
	f.Add([]byte(fmt.Sprint("skep-run", version)))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "running")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		want := s.Suspects()
		die(t, s)
		wantSuspects(t, open(t, path), want)
	})
}

// TestPriorLife: what computed at a death is of the life that ended with it, also at the start after one that
// failed before it ran anything.
func TestPriorLife(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	first := open(t, path)
	first.Computing(first.Begin(id(1)))
	die(t, first)
	failed := open(t, path)
	die(t, failed)
	second := open(t, path)
	if second.PriorLife() != first.Life() {
		t.Errorf("prior life %x, want %x of the one that died", second.PriorLife(), first.Life())
	}
	wantSuspects(t, second, map[ID]int{id(1): 0})
	second.End(id(1), second.Begin(id(1)))
	second.Computing(second.Begin(id(2)))
	die(t, second)
	third := open(t, path)
	if third.PriorLife() != second.Life() {
		t.Errorf("prior life %x, want %x of the one that died", third.PriorLife(), second.Life())
	}
	wantSuspects(t, third, map[ID]int{id(2): 0})
}

// TestEndLife: a life that ended in order is known as such until another one has begun a turn. One whose turn still
// ran, and one that died later, is not.
func TestEndLife(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "running")
	var prior Life
	reopen := func(ended bool) *RunningSet {
		t.Helper()
		s := open(t, path)
		if s.PriorLife() != prior || s.PriorEnded() != ended {
			t.Errorf("the prior life is %x, ended %v, want %x, %v", s.PriorLife(), s.PriorEnded(), prior, ended)
		}
		return s
	}
	s := reopen(false)
	s.EndLife() // it has begun nothing
	die(t, s)
	s = reopen(false)
	n := s.Begin(id(1))
	s.Computing(n)
	s.EndLife()
	prior = s.Life()
	die(t, s)
	s = reopen(false)
	s.End(id(1), s.Begin(id(1)))
	s.Stop(id(2), s.Begin(id(2)))
	s.EndLife()
	prior = s.Life()
	die(t, s)
	for range 2 { // the first one begins nothing
		s = reopen(true)
		wantSuspects(t, s, map[ID]int{})
		die(t, s)
	}
	s = reopen(true)
	s.End(id(1), s.Begin(id(1)))
	s.EndLife()
	s.Begin(id(2)) // after all
	prior = s.Life()
	die(t, s)
	reopen(false)
}
