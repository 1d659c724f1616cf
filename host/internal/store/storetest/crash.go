package storetest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/swarm"
)

// crashPlace is the environment variable with the place that a child process
// writes to until it is killed.
const crashPlace = "SKEP_STORETEST_CRASH_PLACE"

const crashTasks = 8

// crash kills a process that writes, at random moments, and opens what it left.
// Every step it had acknowledged must be there, and each task must be at the
// end of a step.
func crash(t *testing.T, e Engine) {
	kills := 10
	if testing.Short() {
		kills = 3
	}
	at := e.NewPlace(t)
	acked := make(map[string]int64)
	for range kills {
		acks := 1 + rand.IntN(400)
		crashRun(t, at, acks, acked)
		s := e.Open(t, at)
		for i := range crashTasks {
			// A step may be whole and its acknowledgement lost with the process.
			wantAdvanced(t, s, swarm.TaskKey{InstanceKey: alice, Task: name(i)}, acked[name(i)], acked[name(i)]+1)
			acked[name(i)] = position(t, s, name(i))
		}
		closeStore(t, s)
		if t.Failed() {
			t.Fatalf("after a kill that followed %d acknowledgements", acks)
		}
	}
}

// crashRun starts a child on a place and kills it after a number of
// acknowledgements; those it sent until it was dead count as well.
func crashRun(t *testing.T, at Place, acks int, acked map[string]int64) {
	t.Helper()
	cmd := child(t, crashPlace, at)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var task string
		var n int64
		if _, err := fmt.Sscanf(lines.Text(), "ack %s %d", &task, &n); err != nil {
			t.Errorf("child says %q", lines.Text())
			continue
		}
		acked[task] = max(acked[task], n)
		if seen++; seen == acks {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < acks {
		t.Fatalf("child ended by itself after %d acknowledgements: %v", seen, err)
	}
}

// child returns a process that runs the same test as the child of a crash test:
// variable selects the test. The process ends with this test at the latest.
func child(t *testing.T, variable string, at Place) *exec.Cmd {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/reopen/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.ReplaceAll(test, "/", "$/^")+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"="+string(at))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return cmd
}

// endWithParent ends a child when its parent is gone, and with it the other end
// of stdin.
func endWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// crashChild writes and acknowledges until it is killed.
func crashChild(t *testing.T, s Store) {
	endWithParent()
	var wg sync.WaitGroup
	for i := range crashTasks {
		wg.Go(func() {
			task := name(i)
			for n := position(t, s, task) + 1; ; n++ {
				if err := takeTurn(t, s, task, n); err != nil {
					t.Errorf("turn %d of %s: %v", n, task, err)
					return
				}
				// One write each: lines of several tasks do not mix.
				fmt.Fprintf(os.Stdout, "ack %s %d\n", task, n)
			}
		})
	}
	wg.Wait()
}
