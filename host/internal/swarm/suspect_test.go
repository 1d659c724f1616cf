package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// runs is a running set in memory that outlives the runtime.
type runs struct {
	mu       sync.Mutex
	suspects map[swarm.TurnID]int
	begun    map[int]swarm.TurnID
	log      []string
	next     int
}

func (s *runs) Suspects() map[swarm.TurnID]int { return s.suspects }

func (s *runs) note(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprint(what, n))
}

func (s *runs) Begin(id swarm.TurnID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[int]swarm.TurnID{}
	}
	s.next++
	s.begun[s.next] = id
	return s.next
}
func (s *runs) Computing(n int)            { s.note("computing ", n) }
func (s *runs) Waiting(n int)              { s.note("waiting ", n) }
func (s *runs) End(_ swarm.TurnID, n int)  { s.note("end ", n) }
func (s *runs) Stop(_ swarm.TurnID, n int) { s.note("stop ", n) }
func (s *runs) Forget(id swarm.TurnID)     { s.note("forget ", int(id[0])) }

// cell is a quarantine in memory.
type cell struct {
	mu  sync.Mutex
	why map[string]string
}

func (c *cell) Why(tenant, name, agent string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why, ok := c.why[tenant+"/"+name+"/"+agent]
	return why, ok
}

func (c *cell) Confine(tenant, name, agent, _, why string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why[tenant+"/"+name+"/"+agent] = why
	return nil
}

func (c *cell) Release(tenant, name, agent string) (bool, error) {
	_, ok := c.Why(tenant, name, agent)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.why, tenant+"/"+name+"/"+agent)
	return ok, nil
}

func watched(set *runs, jail *cell) func(*hive) {
	return func(h *hive) { h.opt.RunSet, h.opt.Quarantine, h.opt.Tokens = set, jail, 16 }
}

func TestRunSetIsToldOfTurns(t *testing.T) {
	t.Parallel()
	set := &runs{}
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
func afterDeath(t *testing.T, tasks []string, strikes func(task string) int, behave behave) (*hive, *runs, *cell) {
	t.Helper()
	set, jail := &runs{}, &cell{why: map[string]string{}}
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
		suspects[set.begun[set.next]] = strikes(id)
		set.mu.Unlock()
	}
	h.stop()
	set.suspects, set.log = suspects, nil
	h.agents.by["boss"] = behave
	h.start()
	return h, set, jail
}

// Suspects run one at a time, fewest strikes first, and nobody waits for them.
func TestSuspectsRunOneAtATime(t *testing.T) {
	t.Parallel()
	strikes := map[string]int{"two": 2, "none-a": 0, "one": 1, "none-b": 0}
	var mu sync.Mutex
	var order []string
	running := 0
	let := make(chan struct{})
	h, _, _ := afterDeath(t, []string{"two", "none-b", "one", "none-a"}, func(id string) int { return strikes[id] },
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
	for id := range strikes {
		eventually(t, id, func() bool { return h.record(id).Task.State == swarm.StateCompleted })
	}
	h.stop()
	if diff := cmp.Diff([]string{"none-a", "none-b", "one", "two"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A task that ends while its suspect waits or runs makes room for the next.
func TestSuspectOfACancelledTask(t *testing.T) {
	t.Parallel()
	strikes := map[string]int{"a": 0, "b": 1, "c": 2}
	begun := make(chan string, 3)
	h, set, _ := afterDeath(t, []string{"a", "b", "c"}, func(id string) int { return strikes[id] },
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
		if err := h.rt.Cancel(t.Context(), key(id), "tester"); err != nil {
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

// The third strike ends the turn without running it, and confines its agent
// until somebody releases it.
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

// A suspect that nobody waits for is cleared, and a turn that the host stops
// stays in the set.
func TestSuspectsThatDoNotCount(t *testing.T) {
	t.Parallel()
	set := &runs{suspects: map[swarm.TurnID]int{{42}: 1}}
	h := newHive(t, watched(set, &cell{}))
	begun := make(chan struct{})
	h.agents.by["boss"] = func(ctx context.Context, t *swarm.Turn) swarm.Outcome {
		close(begun)
		<-ctx.Done()
		return swarm.Outcome{Failure: &swarm.Failure{Cause: "stopped", Message: "stopped"}}
	}
	h.mustPost("hello")
	<-begun
	h.stop()
	if diff := cmp.Diff([]string{"forget 42", "computing 1", "waiting 1", "stop 1"}, set.log); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
