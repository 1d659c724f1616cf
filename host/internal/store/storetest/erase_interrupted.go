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

// erasePlace is the environment variable with the place where a child process
// erases the tenant "victim" until it is killed.
const erasePlace = "SKEP_STORETEST_ERASE_PLACE"

var victim = swarm.InstanceKey{Tenant: "victim", Swarm: "hive", Instance: "user:alice"}

// eraseInterrupted kills a process that erases a tenant at random moments. The next
// open takes the erasure up, or finds that it never began; the other tenant is
// as it was.
func eraseInterrupted(t *testing.T, e Engine) {
	kills := 12
	if testing.Short() {
		kills = 4
	}
	at := e.NewPlace(t)
	s := e.Open(t, at)
	fillTask(t, s, alice, "t1", "MARK")
	other := export(t, s, alice.Tenant)
	closeStore(t, s)
	for range kills {
		s := e.Open(t, at)
		whole := populate(t, s)
		closeStore(t, s)
		eraseRun(t, at, time.Duration(rand.IntN(40))*time.Millisecond)
		s = e.Open(t, at)
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
func populate(t *testing.T, s Store) string {
	t.Helper()
	for i := range 10 {
		fillTask(t, s, victim, name(i), "MARK")
	}
	st := newTask(victim, "large")
	for range 4 {
		step := st.mutation()
		for range 500 {
			step.Events, step.History = append(step.Events, st.event("e")), append(step.History, st.note("a", "x"))
		}
		mustCommit(t, s, step)
	}
	return export(t, s, victim.Tenant)
}

// awaitErased waits until writes for the victim are taken again.
func awaitErased(t *testing.T, s Store) {
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
func eraseRun(t *testing.T, at Place, after time.Duration) {
	t.Helper()
	cmd := child(t, erasePlace, at)
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
func eraseChild(t *testing.T, s Store) {
	endWithParent()
	fmt.Fprintln(os.Stdout, "erase")
	if err := s.Erase(t.Context(), victim.Tenant); err != nil {
		t.Error(err)
	}
	select {}
}
