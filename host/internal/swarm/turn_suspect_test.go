package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// fakeRunSet is a running set in memory that outlives the runtime.
type fakeRunSet struct {
	mu       sync.Mutex
	suspects map[swarm.TurnID]int
	begun    map[int]swarm.TurnID
	log      []string
	next     int
}

func (s *fakeRunSet) Suspects() map[swarm.TurnID]int { return s.suspects }

func (s *fakeRunSet) note(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprint(what, n))
}

func (s *fakeRunSet) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *fakeRunSet) Begin(id swarm.TurnID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[int]swarm.TurnID{}
	}
	s.next++
	s.begun[s.next] = id
	return s.next
}
func (s *fakeRunSet) Computing(n int)            { s.note("computing ", n) }
func (s *fakeRunSet) Waiting(n int)              { s.note("waiting ", n) }
func (s *fakeRunSet) End(_ swarm.TurnID, n int)  { s.note("end ", n) }
func (s *fakeRunSet) Stop(_ swarm.TurnID, n int) { s.note("stop ", n) }
func (s *fakeRunSet) Forget(id swarm.TurnID)     { s.note("forget ", int(id[0])) }

// fakeQuarantine is a quarantine in memory.
type fakeQuarantine struct {
	mu  sync.Mutex
	why map[string]string
}

func (c *fakeQuarantine) Reason(tenant, name, agent string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why, ok := c.why[tenant+"/"+name+"/"+agent]
	return why, ok
}

func (c *fakeQuarantine) Confine(tenant, name, agent, _, why string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why[tenant+"/"+name+"/"+agent] = why
	return nil
}

func (c *fakeQuarantine) Release(tenant, name, agent string) (bool, error) {
	_, ok := c.Reason(tenant, name, agent)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.why, tenant+"/"+name+"/"+agent)
	return ok, nil
}

func watched(set *fakeRunSet, jail *fakeQuarantine) func(*hive) {
	return func(h *hive) { h.opt.RunSet, h.opt.Quarantine, h.opt.Tokens = set, jail, 16 }
}

func TestRunSetRecordsTurns(t *testing.T) {
	t.Parallel()
	set := &fakeRunSet{}
	h := newHive(t, func(h *hive) {
		h.opt.RunSet = set
	})
	h.ask("hello")
	h.stop()
	want := []string{"computing 1", "waiting 1", "end 1"}
	if diff := cmp.Diff(want, set.log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// afterDeath runs tasks whose turns block until the runtime is stopped, and
// starts it again with these turns as suspects.
func afterDeath(t *testing.T, tasks []string, crashes func(task string) int, behave behave) (*hive, *fakeRunSet, *fakeQuarantine) {
	t.Helper()
	set, jail := &fakeRunSet{}, &fakeQuarantine{why: map[string]string{}}
	h := newHive(t, watched(set, jail))
	var begun sync.WaitGroup
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		begun.Done()
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "stopped", Message: "stopped"}}
	}
	suspects := map[swarm.TurnID]int{}
	for _, id := range tasks {
		begun.Add(1)
		h.mustPost("hello", task(id))
		begun.Wait()
		set.mu.Lock()
		suspects[set.begun[set.next]] = crashes(id)
		set.mu.Unlock()
	}
	h.stop()
	set.suspects, set.log = suspects, nil
	h.agents.by["boss"] = behave
	h.start()
	return h, set, jail
}

// Suspects run one at a time, fewest crashes first, and other turns do not wait for
// them.
func TestSuspectsRunOneAtATime(t *testing.T) {
	t.Parallel()
	crashes := map[string]int{"two": 2, "none-a": 0, "one": 1, "none-b": 0}
	var mu sync.Mutex
	var order []string
	running := 0
	let := make(chan struct{})
	h, _, _ := afterDeath(t, []string{"two", "none-b", "one", "none-a"}, func(id string) int { return crashes[id] },
		func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			if t.Key().Task == "fresh" {
				call(t, mail.ToolTaskComplete, obj{"finish_message": "fresh"})
				return swarm.Outcome{}
			}
			mu.Lock()
			order = append(order, t.Key().Task)
			running++
			if running > 1 {
				order = append(order, "two at once")
			}
			mu.Unlock()
			<-let
			mu.Lock()
			running--
			mu.Unlock()
			call(t, mail.ToolTaskComplete, obj{"finish_message": "done"})
			return swarm.Outcome{}
		})
	if a := h.ask("hello", task("fresh")); a.Body != "fresh" {
		t.Errorf("%+v", a)
	}
	close(let)
	for id := range crashes {
		eventually(t, id, func() bool { return h.record(id).Task.State == swarm.StateCompleted })
	}
	h.stop()
	if diff := cmp.Diff([]string{"none-a", "none-b", "one", "two"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A suspect that waits lets the next one run, whose answer it may wait for, and computes on when that
// one does not compute.
func TestSuspectWaitsForAnother(t *testing.T) {
	t.Parallel()
	crashes := map[string]int{"asks": 0, "answers": 1, "other": 2}
	answered := make(chan struct{})
	var computing atomic.Int32
	compute := func() {
		if computing.Add(1) > 1 {
			t.Error("two compute at once")
		}
		runtime.Gosched()
		computing.Add(-1)
	}
	h, _, _ := afterDeath(t, []string{"other", "answers", "asks"}, func(id string) int { return crashes[id] },
		func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
			compute()
			if turn.Key().Task == "asks" {
				turn.CPU().Release()
				<-answered
				if err := turn.CPU().Acquire(ctx); err != nil {
					return failed(err)
				}
			}
			compute()
			call(turn, mail.ToolTaskComplete, obj{"finish_message": "done"})
			if turn.Key().Task == "answers" {
				close(answered)
			}
			compute()
			return swarm.Outcome{}
		})
	for id := range crashes {
		eventually(t, id, func() bool { return h.record(id).Task.State == swarm.StateCompleted })
	}
}

// A task that ends while its suspect waits or runs makes room for the next.
func TestSuspectOfACancelledTask(t *testing.T) {
	t.Parallel()
	crashes := map[string]int{"a": 0, "b": 1, "c": 2}
	begun := make(chan string, 3)
	h, set, _ := afterDeath(t, []string{"a", "b", "c"}, func(id string) int { return crashes[id] },
		func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
			begun <- t.Key().Task
			if t.Key().Task == "a" {
				<-ctx.Done()
				return swarm.Outcome{Failure: &swarm.Failure{Cause: "stopped", Message: "stopped"}}
			}
			call(t, mail.ToolTaskComplete, obj{"finish_message": "done"})
			return swarm.Outcome{}
		})
	if first := <-begun; first != "a" {
		t.Errorf("%s is first", first)
	}
	for _, id := range []string{"b", "a"} {
		if err := h.rt.CancelTask(t.Context(), key(id), "tester"); err != nil {
			t.Fatal(err)
		}
	}
	if second := <-begun; second != "c" {
		t.Errorf("%s is second", second)
	}
	eventually(t, "c", func() bool { return h.record("c").Task.State == swarm.StateCompleted })
	h.stop()
	if log := strings.Join(set.log, "; "); strings.Contains(log, "stop") || strings.Count(log, "end") != 2 {
		t.Errorf("the set was told %s", log)
	}
}

// The third further crash ends the turn without running it, and confines its agent until it is
// released.
func TestThirdStrike(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 10)
	h, set, jail := afterDeath(t, []string{"poison"}, func(string) int { return 3 },
		func(_ context.Context, t *swarm.Turn) swarm.Outcome {
			ran <- t.Key().Task
			call(t, mail.ToolTaskComplete, obj{"finish_message": "done"})
			return swarm.Outcome{}
		})
	eventually(t, "the task fails", func() bool { return h.record("poison").Task.State == swarm.StateFailed })
	events := h.events("poison")
	a, ok := events[len(events)-1].Answer()
	if !ok || a.Subject != mail.SubjectAgentError || !strings.Contains(a.Body, "computing at 4 deaths of the host") || !strings.Contains(a.Body, "skep agent release boss") {
		t.Errorf("%+v", a)
	}
	if a := h.ask("hello", task("next")); a.State != swarm.StateFailed || !strings.Contains(a.Body, "in quarantine until `skep agent release boss`") {
		t.Errorf("%+v", a)
	}
	h.restart()
	if a := h.ask("hello", task("later")); a.State != swarm.StateFailed {
		t.Errorf("%+v", a)
	}
	if len(ran) > 0 {
		t.Errorf("%s ran", <-ran)
	}
	if err := h.rt.ReleaseAgent(swarm.DefaultTenant, "hive", "boss"); err != nil {
		t.Fatal(err)
	}
	if err := h.rt.ReleaseAgent(swarm.DefaultTenant, "hive", "boss"); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if a := h.ask("hello", task("again")); a.Body != "done" {
		t.Errorf("%+v", a)
	}
	h.stop()
	if len(jail.why) != 0 || len(set.log) == 0 {
		t.Errorf("%v, %v", jail.why, set.log)
	}
}

// A suspect without a row is cleared, and a turn that the host stops stays in the set.
func TestSuspectsThatDoNotCount(t *testing.T) {
	t.Parallel()
	set := &fakeRunSet{suspects: map[swarm.TurnID]int{{42}: 1}}
	h := newHive(t, watched(set, &fakeQuarantine{}))
	begun := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		close(begun)
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "stopped", Message: "stopped"}}
	}
	h.mustPost("hello")
	<-begun
	eventually(t, "the suspect is cleared", func() bool { return slices.Contains(set.lines(), "forget 42") })
	h.stop()
	// The suspects are cleared while the first turn begins.
	turns := slices.DeleteFunc(set.lines(), func(line string) bool { return line == "forget 42" })
	if diff := cmp.Diff([]string{"computing 1", "waiting 1", "stop 1"}, turns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The command that releases an agent names a tenant other than the operator's.
func TestQuarantineHintNamesTheTenant(t *testing.T) {
	t.Parallel()
	jail := &fakeQuarantine{why: map[string]string{"free/hive/boss": "it was asked for"}}
	h := newHive(t, withTenants(nil), watched(&fakeRunSet{}, jail))
	if a := h.ask("hello", of("free")); !strings.Contains(a.Body, "`skep agent release boss --tenant free`") {
		t.Errorf("%+v", a)
	}
}
