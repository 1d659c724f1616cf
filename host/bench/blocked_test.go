package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestModelSwarms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "agent")
	if err := os.WriteFile(file, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"file", "exec"} {
		for _, wire := range []string{"openai", "anthropic"} {
			cfg, err := parse(modelSwarm(sourceOf(kind, file), wire, "http://127.0.0.1:1/v1", "turns = 77"), dir)
			if err != nil {
				t.Errorf("%s, %s: %v", kind, wire, err)
				continue
			}
			if len(cfg.Models) != 1 || cfg.Models[0].Provider != wire || cfg.Limits.Turns != 77 {
				t.Errorf("%s, %s: %+v, %+v", kind, wire, cfg.Models, cfg.Limits)
			}
		}
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	var few, some, many waitingCost
	few[ownBytes], some[ownBytes], many[ownBytes] = 1, 2, 300
	few[drainTime], some[drainTime], many[drainTime] = 9, 8, 7
	if m := middle([]waitingCost{many, few, some}); m[ownBytes] != 2 || m[drainTime] != 8 || m[quiet50] != 0 {
		t.Errorf("the middle is %v", m)
	}
}

func TestWaitingCostFills(t *testing.T) {
	t.Parallel()
	before := look{runtimeStats{Heap: 100, Stacks: 10, Go: 200, Goroutines: 5}, 300, 1000, 50, 7}
	after := look{runtimeStats{Heap: 300, Stacks: 30, Go: 500, Goroutines: 25}, 700, 1800, 70, 17}
	var k waitingCost
	k.fill(before, after, 10)
	want := waitingCost{
		ownBytes: 40, heapBytes: 20, stackBytes: 2, besideBytes: 10, sharedBytes: 40, descendantBytes: 2,
		routineCount: 20, fileCount: 10,
	}
	if k != want {
		t.Errorf("filled %v, want %v", k, want)
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	n := 0
	if err := until(3, func() (int, error) { n++; return n, nil }); err != nil || n != 3 {
		t.Errorf("%d looks, %v", n, err)
	}
	broken := errors.New("broken")
	if err := until(3, func() (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a look that failed: %v", err)
	}
}

func TestParentIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stat          string
		child, parent int
		ok            bool
	}{
		{"12 (bench) S 7 12 12 0", 12, 7, true},
		{"12 (a) b (c) S 7 12", 12, 7, true},
		{"12 (a b) S 7 12", 12, 7, true},
		{"12 (bench) S", 0, 0, false},
		{"x (bench) S 7", 0, 0, false},
		{"12 (bench) S x", 12, 0, false},
		{"", 0, 0, false},
	} {
		child, parent, ok := parentIn(tt.stat)
		if ok != tt.ok || ok && (child != tt.child || parent != tt.parent) {
			t.Errorf("%q: %d, %d, %v", tt.stat, child, parent, ok)
		}
	}
}

func TestDescends(t *testing.T) {
	t.Parallel()
	parents := map[int]int{10: 1, 11: 10, 12: 11, 20: 1}
	for child, want := range map[int]bool{11: true, 12: true, 10: false, 20: false, 99: false} {
		if got := descends(parents, child, 10); got != want {
			t.Errorf("%d descends from 10: %v", child, got)
		}
	}
}

// TestDescendantMemory finds the memory of a process that was started.
func TestDescendantMemory(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	if n, err := descendantMemory(os.Getpid()); err != nil || n <= 0 {
		t.Errorf("kin have %v, %v", n, err)
	}
	if n, err := descendantMemory(cmd.Process.Pid); err != nil || n != 0 {
		t.Errorf("the kin of a process that has none have %v, %v", n, err)
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	var now time.Duration
	clock := func() time.Duration { return now }
	broken := errors.New("broken")
	spends := func(d time.Duration, err error) func() error {
		return func() error { now += d; return err }
	}
	ops, took, err := difference("ten", 10, clock, spends(time.Second, nil), spends(6*time.Second, nil)).do(0)
	if ops != 10 || took != 5*time.Second || err != nil {
		t.Errorf("%d in %v, %v; want 10 in 5s", ops, took, err)
	}
	if _, took, err := difference("noise", 10, clock, spends(2, nil), spends(1, nil)).do(0); took <= 0 || err != nil {
		t.Errorf("what is lost in noise took %v, %v", took, err)
	}
	for name, s := range map[string]subject{
		"none": difference("", 1, clock, spends(0, broken), spends(0, nil)),
		"all":  difference("", 1, clock, spends(0, nil), spends(0, broken)),
	} {
		if _, _, err := s.do(0); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
