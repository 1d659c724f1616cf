package storetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
)

// eraseDir names, in its environment, the directory whose tenant "victim" a
// child process erases until it is killed.
const eraseDir = "SKEP_STORETEST_ERASE_DIR"

var victim = swarm.InstanceKey{Tenant: "victim", Swarm: "hive", Instance: "user:alice"}

// eraseCut kills a process that erases a tenant at random moments. The next
// open takes the erasure up, or finds that it never began; the other tenant is
// as it was.
func eraseCut(t *testing.T, open Open) {
	kills := 12
	if testing.Short() {
		kills = 4
	}
	dir := t.TempDir()
	s := open(t, dir)
	furnish(t, s, alice, "t1", "MARK")
	other := export(t, s, alice.Tenant)
	closeStore(t, s)
	for range kills {
		s := open(t, dir)
		whole := populate(t, s)
		closeStore(t, s)
		eraseRun(t, dir, time.Duration(rand.IntN(40))*time.Millisecond)
		s = open(t, dir)
		awaitErased(t, s)
		if text := export(t, s, victim.Tenant); text != whole && len(bodies(t, text)) != 0 {
			t.Errorf("an erasure that was cut short left %d lines", len(bodies(t, text)))
		}
		if export(t, s, alice.Tenant) != other {
			t.Error("the other tenant is not as it was")
		}
		mustErase(t, s, victim.Tenant)
		closeStore(t, s)
		if t.Failed() {
			return
		}
	}
}

// populate gives the victim enough to need many slices.
func populate(t *testing.T, s Engine) string {
	t.Helper()
	for i := range 10 {
		furnish(t, s, victim, name(i), "MARK")
	}
	st := newStory(victim, "large")
	for range 4 {
		step := st.step()
		for range 500 {
			step.Events, step.History = append(step.Events, st.event("e")), append(step.History, st.note("a", "x"))
		}
		mustCommit(t, s, step)
	}
	return export(t, s, victim.Tenant)
}

// awaitErased waits until writes for the victim are taken again.
func awaitErased(t *testing.T, s Engine) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := s.Journal(t.Context(), swarm.TaskKey{InstanceKey: victim, Task: "none"}, 1, swarm.JournalWrite{Header: header("a")})
		if errors.Is(err, swarm.ErrNotFound) {
			return
		}
		if !errors.Is(err, swarm.ErrErasing) {
			t.Fatalf("Journal to no task = %v", err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the erasure does not end")
		}
	}
}

// eraseRun starts a child that erases and kills it a moment after it began.
func eraseRun(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := child(t, eraseDir, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "erase") {
		t.Errorf("child says %q", lines.Text())
	}
	time.Sleep(after) // anywhere will do
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // it was killed
}

// eraseChild erases until it is killed.
func eraseChild(t *testing.T, s Engine) {
	endWithParent()
	fmt.Fprintln(os.Stdout, "erase")
	if err := s.Erase(t.Context(), victim.Tenant); err != nil {
		t.Error(err)
	}
	select {}
}
